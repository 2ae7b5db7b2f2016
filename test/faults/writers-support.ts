import type { SessionHead } from "../../src/session/log/fold.ts";
import { expect, onTestFinished } from "vitest";
import type { SessionStore } from "../../src/session/store.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { Crew } from "../torture/crew.mjs";
import { Ledger } from "../torture/ledger.mjs";
import { runTrial } from "../torture/run-trial.mjs";
import { type Trial, trials } from "../torture/trials.mjs";
import { start } from "./program-support.ts";

const DURATION_MS_MAX = 180_000;

/**
 * Starts processes that each append to the session `shared`, and checks that every entry is stored once, in one order on one
 * path, and that `checkStore` finds nothing. Calls `meanwhile` repeatedly until the processes are done. Returns the id of one
 * of the last messages; its text begins with the id.
 */
export async function writeTogether(
  address: string,
  work: { readonly processes: number; readonly appends: number },
  meanwhile: () => Promise<void>,
): Promise<string> {
  const { processes, appends } = work;
  const ledger = new Ledger();
  const crew = new Crew({ ledger, address, sessions: ["shared"], inFlight: 2, appends });
  onTestFinished(() => crew.stop());
  crew.hire(processes);
  let running = true;
  const ended = crew.ended().then(() => {
    running = false;
  });
  while (running) {
    await meanwhile();
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 200))]);
  }
  // Every fifth append has three entries.
  const expected = processes * (appends + (2 * appends) / 5);
  const { entries, violations } = await ledger.check(address);
  expect(violations).toEqual([]);
  expect([entries, ledger.done.size, ledger.failures]).toEqual([expected, expected, 0]);
  return [...ledger.done.keys()].findLast((id) => !id.includes("/")) as string;
}

/** Starts four processes that increment a counter in the session `counted` with compare-and-set, and checks that no increment was lost. */
export async function expectCounted(address: string, store: SessionStore, times: number): Promise<void> {
  const programs = Array.from({ length: 4 }, () => start("count.mjs", [address, "counted", String(times)]));
  for (const { child, lines, more } of programs) {
    while (lines().length === 0) {
      if (child.exitCode !== null) throw new Error("A program ended before it was ready.");
      await more();
    }
  }
  // All processes begin at the same time, so that their appends conflict.
  for (const { child } of programs) child.stdin.write("\n");
  await Promise.all(programs.map(({ ended }) => ended));
  const conflicts = programs.map(({ lines }) => Number(/^done (\d+)$/.exec(lines().at(-1) ?? "")?.[1]));
  expect(conflicts.every((count) => count >= 0)).toBe(true);
  expect(conflicts.reduce((sum, count) => sum + count)).toBeGreaterThan(0);
  const head = (await store.head("counted")) as SessionHead;
  const { variables } = await store.settings("counted", head.path);
  expect([head.version, variables]).toEqual([4 * times, { count: 4 * times }]);
  await checkHeadIsFold(store, "counted");
}

/** Runs a short trial of `npm run torture` with so many faults, and checks that every promise of the store holds. */
export async function expectKept(kind: Trial["kind"], store: string, strikes: number): Promise<void> {
  const trial = trials.find((each) => each.kind === kind && each.store === store);
  if (trial === undefined) throw new Error(`There is no trial of ${kind} on ${store}.`);
  const outcome = await runTrial(trial, { durationMs: DURATION_MS_MAX, strikesMax: strikes, everyMs: 20 });
  expect(outcome.violations).toEqual([]);
  expect(outcome.strikes).toBe(strikes);
  expect(outcome.acknowledged).toBeGreaterThan(strikes);
}
