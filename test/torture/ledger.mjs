import { checkStore } from "skein/store";
import { openAt } from "../faults/programs/open-at.mjs";

/** @typedef {import("skein").SessionStore} SessionStore */
/** @typedef {import("skein").Entry} Entry */

/**
 * The result of comparing a store with a ledger.
 * @typedef {object} LedgerReport
 * @property {number} entries in the store
 * @property {number} landed of the entries whose outcome was never reported
 * @property {readonly string[]} violations
 */

const violationsMax = 20;

/** The appends of writers, from their output: attempted, acknowledged with position, failed. */
export class Ledger {
  /** The session that each entry was tried in. @type {Map<string, string>} */
  tried = new Map();
  /** The position that each entry was acknowledged at. @type {Map<string, number>} */
  done = new Map();
  /** How often a call failed, by code. @type {Map<string, number>} */
  failed = new Map();
  /** Violations reported by writers or observers. @type {string[]} */
  wrong = [];

  /** The number of entries whose append was attempted and whose result is unknown. */
  get unknown() {
    return this.tried.size - this.done.size;
  }

  /** How many calls failed. */
  get failures() {
    return [...this.failed.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Takes down one line of a writer.
   * @param {string} line
   */
  note(line) {
    const [word, ...rest] = line.split(" ");
    const [session = "", ...ids] = rest;
    if (word === "try") for (const id of ids) this.tried.set(id, session);
    else if (word === "done") ids.slice(1).forEach((id, index) => void this.done.set(id, Number(ids[0]) + index));
    else if (word === "failed") this.failed.set(session, (this.failed.get(session) ?? 0) + 1);
    else this.wrong.push(rest.join(" "));
  }

  /**
   * Compares a store with the acknowledgements of its writers, and checks its consistency.
   * @param {string} address
   * @returns {Promise<LedgerReport>}
   */
  async check(address) {
    const store = await openAt(address);
    try {
      return await this.#checkStore(store);
    } finally {
      await store.close();
    }
  }

  /** @param {SessionStore} store */
  async #checkStore(store) {
    const violations = [...this.wrong];
    const found = new Set();
    let landed = 0;
    for (const session of new Set(this.tried.values())) {
      /** @type {Entry[]} */
      const entries = [];
      try {
        for await (const entry of store.read(session)) entries.push(entry);
      } catch (error) {
        violations.push(`${session} cannot be read: ${error}`);
      }
      for (const entry of entries) {
        if (found.has(entry.id)) violations.push(`${entry.id} is there twice.`);
        found.add(entry.id);
        if (!this.done.has(entry.id)) landed += 1;
      }
      violations.push(...this.#checkLog(session, entries));
    }
    for (const id of this.done.keys()) if (!found.has(id)) violations.push(`${id} was acknowledged and is not there.`);
    const { findings } = await checkStore(store);
    violations.push(...findings.map(({ sessionId, kind, message }) => `${sessionId} (${kind}): ${message}`));
    return { entries: found.size, landed, violations: violations.slice(0, violationsMax) };
  }

  /**
   * One order without a gap, on one path, with each entry where it was acknowledged, each append whole, and those of one
   * writer in the order in which it made them.
   * @param {string} session
   * @param {readonly Entry[]} entries
   */
  #checkLog(session, entries) {
    const violations = [];
    const lastOf = new Map();
    let leaf = null;
    for (const [seq, entry] of entries.entries()) {
      const { id, parentId, type } = entry;
      if (entry.seq !== seq) violations.push(`${id} says that it is at ${entry.seq} of ${session}, and is at ${seq}.`);
      if (parentId !== leaf) violations.push(`${id} hangs on ${parentId}, not on ${leaf}, which came before it.`);
      if (type === "message") leaf = id;
      if (this.tried.get(id) !== session) violations.push(`Nobody tried to append ${id} to ${session}.`);
      const told = this.done.get(id);
      if (told !== undefined && told !== seq) violations.push(`${id} was acknowledged at ${told} and is at ${seq}.`);
      const [append = "", part] = id.split("/");
      if (part === "1" && [2, 3].some((n) => entries[seq + n - 1]?.id !== `${append}/${n}`))
        violations.push(`Only a part of ${append} is there.`);
      const [lane = "", number] = append.split("-");
      if (Number(number) < (lastOf.get(lane) ?? 0)) violations.push(`${id} came after a later one of its writer.`);
      lastOf.set(lane, Number(number));
    }
    return violations;
  }
}
