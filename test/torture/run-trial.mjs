import { setTimeout as wait } from "node:timers/promises";
import { Crew } from "./crew.mjs";
import { Ledger } from "./ledger.mjs";

const writers = 4;
const inFlight = 3;
const sessions = ["s0", "s1", "s2"];
const progressEveryMs = 5_000;

/**
 * The result of a trial.
 * @typedef {object} Outcome
 * @property {number} strikes the number of injected faults
 * @property {number} acknowledged entries
 * @property {number} unknown entries that were tried and never answered
 * @property {number} landed of the unknown ones
 * @property {number} failures calls that failed with a code that may be expected
 * @property {readonly string[]} violations
 */

/**
 * Lets several processes write to a store during faults, and then compares its contents with the acknowledgements.
 * @param {import("./trials.mjs").Trial} trial
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} [limits.strikesMax]
 * @param {number} [limits.everyMs] how long after a strike the next one comes
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 * @returns {Promise<Outcome>}
 */
export async function runTrial(trial, limits) {
  const { durationMs, strikesMax = Number.MAX_SAFE_INTEGER, everyMs = 100, signal, report } = limits;
  const place = await trial.open();
  const ledger = new Ledger();
  const crew = new Crew({ ledger, address: place.address, sessions, inFlight });
  let strikes = 0;
  try {
    crew.hire(writers);
    await crew.progress();
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    for (let told = begin; strikes < strikesMax && Date.now() < end && !signal?.aborted; ) {
      const started = Date.now();
      const struck = await place.strike(crew);
      if (struck) strikes += 1;
      if (report && started - told > progressEveryMs) {
        told = started;
        report(`${Math.round((started - begin) / 1000)} s: ${strikes} strikes, ${ledger.done.size} acknowledged.`);
      }
      // If no process could be killed yet, try again in 5 ms.
      await wait(struck ? Math.max(0, started + everyMs - Date.now()) : 5);
    }
    await crew.stop();
    report?.("Checking what is there.");
    const { landed, violations } = await ledger.check(place.address);
    return {
      strikes,
      acknowledged: ledger.done.size,
      unknown: ledger.unknown,
      landed,
      failures: ledger.failures,
      violations: [...violations, ...(place.problems?.() ?? [])],
    };
  } finally {
    await crew.stop();
    await place.close();
  }
}
