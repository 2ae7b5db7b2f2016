import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createHeader, openStore, SessionManager } from "skein";
import { digestOf } from "skein/store";
import { openAt } from "../faults/programs/open-at.mjs";
import { trials } from "./trials.mjs";

const program = fileURLToPath(new URL("erase-person.mjs", import.meta.url));
const progressEveryMs = 5_000;
/** The duration of an erasure is learned from those that finish before they are killed. */
const durationMsFirst = 200;

/** Where erasing can be tried: the stores that outlive a process. @type {readonly string[]} */
export const eraseStores = ["jsonl", "sqlite", "postgres", "redis"];

/**
 * The result of a trial.
 * @typedef {object} Outcome
 * @property {number} kills
 * @property {number} ended erasures that finished before they were killed
 * @property {readonly string[]} violations
 */

/**
 * Kills processes at random moments while each erases a person, repeats the erasure, and compares the report and the
 * remaining data with an undisturbed erasure.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} [limits.killsMax]
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 * @returns {Promise<Outcome>}
 */
export async function runEraseTrial(store, { durationMs, killsMax = 50, signal, report }) {
  const trial = trials.find((each) => each.kind === "writers" && each.store === store);
  if (trial === undefined) throw new Error(`There is no store ${store} to erase from.`);
  const place = await trial.open();
  const shared = await openAt(place.address);
  /** @type {string[]} */
  const violations = [];
  let [kills, ended, lastMs] = [0, 0, durationMsFirst];
  try {
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    let told = begin;
    for (let round = 0; kills < killsMax && Date.now() < end && !signal?.aborted; round++) {
      const person = await Person.make(shared, `p${round}`);
      const outcome = await eraseAndKill(place.address, person.userId, Math.random() * lastMs);
      if (outcome === null) kills += 1;
      else ended += 1;
      // Until one finishes, the next ones are killed later, so that every moment is covered.
      lastMs = outcome === null ? lastMs * 1.15 : Math.max(5, outcome);
      violations.push(...(await person.problems(shared)));
      if (report && Date.now() - told > progressEveryMs) {
        told = Date.now();
        report(`${Math.round((told - begin) / 1000)} s: ${kills} kills, ${ended} ended before.`);
      }
    }
    return { kills, ended, violations };
  } finally {
    await shared.close();
    await place.close();
  }
}

/**
 * Resolves to null when the process was killed, else to how long it took.
 * @param {string} address
 * @param {string} userId
 * @param {number} afterMs
 */
async function eraseAndKill(address, userId, afterMs) {
  const child = spawn(process.execPath, [program, address, userId], { stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  let beganMs = 0;
  /** @type {number | null} */
  let tookMs = null;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === "done") tookMs = performance.now() - beganMs;
    if (line !== "begun") continue;
    beganMs = performance.now();
    wait(afterMs).then(() => child.kill("SIGKILL"));
  }
  await closed;
  return tookMs;
}

/** A user with sessions, with forks by others and words in sessions of others; the same content is also kept in memory. */
class Person {
  #word;
  #name;
  #model;

  /**
   * @param {string} name
   * @param {import("skein").SessionStore} model
   */
  constructor(name, model) {
    this.#model = model;
    this.#name = name;
    this.#word = `quetzal-${name}-coatl`;
    this.userId = `user-${name}`;
  }

  /**
   * @param {import("skein").SessionStore} store
   * @param {string} name
   */
  static async make(store, name) {
    const person = new Person(name, await openStore("memory:"));
    for (const each of [store, person.#model]) await person.#fill(each);
    return person;
  }

  /**
   * Erases the person once more, and reports differences from the memory store.
   * @param {import("skein").SessionStore} store
   */
  async problems(store) {
    const [report, expected] = [await this.#erase(store), await this.#erase(this.#model)];
    const problems = isDeepStrictEqual(report, expected)
      ? []
      : [`Erasing ${this.userId} ends with ${JSON.stringify(report)} instead of ${JSON.stringify(expected)}.`];
    for (const part of ["own", "branch", "trash", "fork", "fork-of-fork", "group", "group-fork", "calm"]) {
      const id = `${this.#name}-${part}`;
      const [there, wanted] = [await digestIn(store, id), await digestIn(this.#model, id)];
      if (there !== wanted) problems.push(`Session ${id} is ${there} instead of ${wanted}.`);
    }
    if ((await store.search(this.#word)).length > 0) problems.push(`A search finds ${this.#word}.`);
    return problems;
  }

  /** @param {import("skein").SessionStore} store */
  async #erase(store) {
    const { entries, sessions, checkpoints, keptByForks } = await new SessionManager({ store }).erase(
      { userId: this.userId },
      { forks: "erase" },
    );
    return { entries, sessions, checkpoints, keptByForks };
  }

  /** @param {import("skein").SessionStore} store */
  async #fill(store) {
    const { userId } = this;
    const id = (/** @type {string} */ part) => `${this.#name}-${part}`;
    const said = (/** @type {string} */ part, text = this.#word) => ({
      type: /** @type {const} */ ("message"),
      id: id(part),
      timestamp: "2024-01-01T00:00:00.000Z",
      message: { role: /** @type {const} */ ("user"), content: text },
    });
    const make = (/** @type {string} */ part, /** @type {string} */ owner) =>
      createHeader({ id: id(part), userId: owner, createdAt: "2024-01-01T00:00:00.000Z" });
    await store.create(make("own", userId), { entries: [said("1"), said("2"), said("3")] });
    await store.fork(id("own"), make("branch", userId));
    await store.append(id("branch"), [said("4")]);
    await store.fork(id("branch"), make("fork", "bob"));
    await store.append(id("fork"), [said("5", "mine")]);
    await store.fork(id("fork"), make("fork-of-fork", "bob"));
    await store.append(id("fork-of-fork"), [said("6", "mine too")]);
    await store.create(make("trash", userId), { entries: [said("7")] });
    await store.delete(id("trash"));
    await store.create(make("group", "bob"), { entries: [said("8", "hello"), { ...said("9"), by: userId }] });
    await store.fork(id("group"), make("group-fork", "bob"));
    await store.append(id("group-fork"), [said("10", "on and on")]);
    await store.create(make("calm", "bob"), { entries: [said("11", "nothing")] });
  }
}

/**
 * @param {import("skein").SessionStore} store
 * @param {string} id
 */
async function digestIn(store, id) {
  return (await digestOf(store, id))?.digest ?? null;
}
