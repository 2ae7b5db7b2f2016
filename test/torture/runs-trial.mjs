import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openAt } from "../faults/programs/open-at.mjs";
import { checkRuns, linesOf } from "./check-runs.mjs";
import { trials } from "./trials.mjs";

const program = fileURLToPath(new URL("../faults/programs/run-worker.mjs", import.meta.url));
const sessions = ["s0", "s1", "s2", "s3"];
const workers = 2;
const rounds = 3;
const progressEveryMs = 5_000;
const settleMsMax = 120_000;
const cancelledShare = 0.1;
/** How often a process without progress is killed. */
const earlyShare = 0.25;

/** Where runs can be tried: the stores that several processes share. @type {readonly string[]} */
export const runStores = ["jsonl", "sqlite", "postgres", "redis"];

/**
 * The result of a trial.
 * @typedef {object} Outcome
 * @property {number} kills
 * @property {number} runs
 * @property {number} effects calls that did something
 * @property {number} givenUp runs that were killed five times in a row without progress
 * @property {number} interrupted calls whose effect is unknown
 * @property {readonly string[]} violations
 */

/**
 * Lets processes execute runs that need approval before they pay, kills them at random moments, answers their
 * questions, and then checks that every run ended and no effect was repeated.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} [limits.killsMax]
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 * @returns {Promise<Outcome>}
 */
export async function runRunsTrial(store, { durationMs, killsMax = Number.MAX_SAFE_INTEGER, signal, report }) {
  const trial = trials.find((each) => each.kind === "writers" && each.store === store);
  if (trial === undefined) throw new Error(`There is no store ${store} to try runs on.`);
  const place = await trial.open();
  const folder = mkdtempSync(join(tmpdir(), "skein-torture-"));
  const effects = join(folder, "effects");
  const crew = new WorkerCrew([place.address, effects, String(rounds)]);
  try {
    const people = await People.open(place.address);
    crew.hire(workers);
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    let [kills, told] = [0, begin];
    while (kills < killsMax && Date.now() < end && !signal?.aborted) {
      await people.ask();
      await people.answer();
      await wait(Math.random() * 300);
      if (crew.killOne()) kills += 1;
      if (report && Date.now() - told > progressEveryMs) {
        told = Date.now();
        report(`${Math.round((told - begin) / 1000)} s: ${kills} kills, ${people.runs.length} runs.`);
      }
    }
    report?.("Letting the last runs end.");
    const open = await people.settle(settleMsMax);
    await crew.stop();
    const checked = await checkRuns(people.store, {
      sessions,
      runs: people.runs,
      effects: linesOf(effects),
      kills,
      rounds,
    });
    const violations = [
      ...crew.wrong,
      ...open.map((run) => `Run ${run} never came to its end.`),
      ...checked.violations,
    ];
    await people.close();
    return { ...checked, kills, runs: people.runs.length, violations };
  } finally {
    await crew.stop();
    await place.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Users who request runs, answer their questions, and cancel some. */
class People {
  /** @type {{ sessionId: string, runId: string }[]} */
  runs = [];
  #manager;

  /**
   * @param {import("skein").SessionStore} store
   * @param {import("skein").SessionManager} manager
   */
  constructor(store, manager) {
    this.store = store;
    this.#manager = manager;
  }

  /** @param {string} address */
  static async open(address) {
    // Imported here, because dist/ may have been built by this process.
    const { SessionManager } = await import("skein");
    const store = await openAt(address);
    const manager = new SessionManager({ store, config: { maxTurnsPerSession: 1_000_000 } });
    for (const id of sessions) await manager.create({ userId: "someone", id });
    return new People(store, manager);
  }

  /** Requests a run in each session without an open run, twice, as after a lost response. */
  async ask() {
    for (const sessionId of sessions) {
      if ((await this.store.head(sessionId))?.openRuns.length !== 0) continue;
      const runId = `${sessionId}-${this.runs.length}`;
      const request = { agent: "worker", input: `go ${runId}`, runId };
      await Promise.all([0, 1].map(() => this.#manager.request(sessionId, request)));
      this.runs.push({ sessionId, runId });
      if (Math.random() < cancelledShare) await this.#manager.cancel(sessionId, { runId });
    }
  }

  /** Answers all open questions. */
  async answer() {
    const { items } = await this.#manager.runs({ state: "parked" });
    for (const { sessionId, questions } of items) {
      for (const { question } of questions) {
        const yes = () => this.#manager.approve(sessionId, question);
        const no = () => this.#manager.deny(sessionId, question);
        // In half of the cases, two users answer at the same time, and the first answer counts.
        await Promise.allSettled((Math.random() < 0.5 ? [yes, no] : [yes]).map((answer) => answer()));
      }
    }
  }

  /**
   * Answers until no run is open; the runs that are when the time is over.
   * @param {number} withinMs
   * @returns {Promise<readonly string[]>}
   */
  async settle(withinMs) {
    const end = Date.now() + withinMs;
    for (;;) {
      await this.answer();
      const heads = await this.store.heads(sessions);
      const open = heads.flatMap((head) => head?.openRuns.map(({ runId }) => runId) ?? []);
      if (open.length === 0 || Date.now() > end) return open;
      await wait(20);
    }
  }

  async close() {
    await this.store.close();
  }
}

/** Processes that execute runs, and that may be killed. */
class WorkerCrew {
  /** @type {string[]} */
  wrong = [];
  /** @type {Set<{ child: import("node:child_process").ChildProcess, underWay: number, rows: number, killed: boolean }>} */
  #workers = new Set();
  #args;

  /** @param {readonly string[]} args of the program */
  constructor(args) {
    this.#args = args;
  }

  /** @param {number} count */
  hire(count) {
    for (let i = 0; i < count; i++) this.#hireOne();
  }

  /** Kills a random process that has a run with SIGKILL and starts another one. Returns false if no process has a run. */
  killOne() {
    const early = Math.random() < earlyShare;
    const working = [...this.#workers].filter(({ underWay, rows, killed }) => {
      return underWay > 0 && !killed && (early || rows > 0);
    });
    const worker = working[Math.floor(Math.random() * working.length)];
    if (worker === undefined) return false;
    worker.killed = true;
    worker.child.kill("SIGKILL");
    this.#hireOne();
    return true;
  }

  async stop() {
    const left = [...this.#workers];
    for (const { child } of left) child.stdin?.end();
    await Promise.all(
      left.map(({ child }) => (child.exitCode === null && child.signalCode === null ? once(child, "close") : null)),
    );
  }

  #hireOne() {
    const child = spawn(process.execPath, ["--no-warnings", program, ...this.#args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const worker = { child, underWay: 0, rows: 0, killed: false };
    this.#workers.add(worker);
    createInterface({ input: /** @type {import("node:stream").Readable} */ (child.stdout) }).on("line", (line) => {
      if (line.startsWith("begin ")) worker.underWay += 1;
      if (line.startsWith("end ")) worker.underWay -= 1;
      if (line.startsWith("row ")) worker.rows += 1;
      if (line.startsWith("wrong ")) this.wrong.push(line.slice("wrong ".length));
    });
    child.stdin?.on("error", () => {});
    child.on("close", (code) => {
      this.#workers.delete(worker);
      if (!worker.killed && code !== 0) this.wrong.push(`A worker ended with ${code}.`);
    });
  }
}
