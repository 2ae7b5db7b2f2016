import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SessionManager } from "skein";
import { openAt } from "../faults/programs/open-at.mjs";
import { trials } from "./trials.mjs";

const program = fileURLToPath(new URL("budget-member.mjs", import.meta.url));
/** The usage of each answer of a member, and the average number of answers that the budget allows for each run. */
const tokensAnAnswer = 1000;
const answersARun = 4;
const reservedMsMax = 5000;

/** Where budgets can be tried: the stores that several processes can share. @type {readonly string[]} */
export const budgetStores = ["jsonl", "sqlite", "postgres", "redis"];

/**
 * The result of a trial.
 * @typedef {object} Outcome
 * @property {number} rounds
 * @property {number} kills
 * @property {number} overspentMax how many answers were made beyond the limit, at most
 * @property {readonly string[]} violations
 */

/**
 * Two processes run many sessions of a user concurrently and are killed; two others recover the runs, and one of these is killed. Compares
 * the spending in the log with the budget and the ledger.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} [limits.runs] how many runs go on at once
 * @param {number} [limits.roundsMax]
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 * @returns {Promise<Outcome>}
 */
export async function runBudgetTrial(store, { durationMs, runs = 64, roundsMax = 1000, signal, report }) {
  const trial = trials.find((each) => each.kind === "writers" && each.store === store);
  if (trial === undefined) throw new Error(`There is no store ${store} to spend in.`);
  const place = await trial.open();
  const shared = await openAt(place.address);
  /** @type {string[]} */
  const violations = [];
  let [rounds, kills, overspentMax] = [0, 0, 0];
  try {
    const end = Date.now() + durationMs;
    for (; rounds < roundsMax && (rounds === 0 || Date.now() < end) && !signal?.aborted; rounds++) {
      const userId = `p${rounds}`;
      const limit = runs * answersARun * tokensAnAnswer;
      const begin = (/** @type {number} */ count) => new Member([place.address, userId, String(limit), String(count)]);
      const first = [begin(runs / 2), begin(runs / 2)];
      await Promise.all(first.map((member) => member.killAfter(1 + Math.floor(Math.random() * runs))));
      const [killed, last] = [begin(0), begin(0)];
      await killed.killAfter(1 + Math.floor(Math.random() * runs));
      kills += 3;
      await last.closed;
      const { spent, problems } = await compare(shared, userId, { limit, runs });
      overspentMax = Math.max(overspentMax, (spent - limit) / tokensAnAnswer);
      violations.push(...problems);
      report?.(`round ${rounds + 1}: ${(spent - limit) / tokensAnAnswer} answers beyond the limit of ${runs} runs.`);
    }
    return { rounds, kills, overspentMax, violations };
  } finally {
    await shared.close();
    await place.close();
  }
}

/** A process that starts and recovers runs. */
class Member {
  #answers = 0;
  #onAnswer = () => {};

  /** @param {readonly string[]} args */
  constructor(args) {
    this.child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    this.closed = once(this.child, "close");
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      if (line === "answer") this.#answers += 1;
      this.#onAnswer();
    });
  }

  /**
   * Kills the process after so many answers, unless it ends before.
   * @param {number} count
   */
  async killAfter(count) {
    const reached = new Promise((resolve) => {
      this.#onAnswer = () => this.#answers >= count && resolve(null);
    });
    await Promise.race([reached, this.closed]);
    this.child.kill("SIGKILL");
    await this.closed;
  }
}

/**
 * The spending of a user's runs, and the problems with it.
 * @param {import("skein").SessionStore} store
 * @param {string} userId
 * @param {{ limit: number, runs: number }} expected
 */
async function compare(store, userId, { limit, runs }) {
  const { budgets } = new SessionManager({ store, budgets: [{ per: "user", window: "1d", totalTokens: limit }] });
  const [sum] = await store.aggregate({ userId, groupBy: [] });
  const spent = sum?.usage.totalTokens ?? 0;
  /** @type {string[]} */
  const problems = [];
  const most = limit + runs * tokensAnAnswer;
  if (spent > most) problems.push(`The runs of ${userId} spent ${spent} tokens; ${most} are allowed.`);
  if (spent < limit / 2) problems.push(`The runs of ${userId} ended after ${spent} tokens of ${limit}.`);
  const deadline = Date.now() + reservedMsMax;
  for (;;) {
    const [level] = (await budgets?.levels(userId)) ?? [];
    if (level?.reserved === 0 && level.spent === spent) break;
    if (Date.now() > deadline) {
      problems.push(
        `The ledger of ${userId} has ${level?.spent} tokens and ${level?.reserved} reserved, not ${spent}.`,
      );
      break;
    }
    await wait(50);
  }
  return { spent, problems };
}
