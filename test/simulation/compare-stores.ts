import { describe, expect, test } from "vitest";
import { skipBecause } from "../skip.ts";
import { type Backend, everyDriver, kindOf, missingBackends } from "../store-backends.ts";
import { SeededRandom } from "./seeded-random.ts";
import { simulate } from "./simulate.ts";

/** `npm run torture` tries as many more as there is time for. */
const SEEDS = 30;
/** For another client of a kind of store that has been through all seeds. */
const SEEDS_AGAIN = 10;
const SEEDS_A_TEST = 10;
const SEEDS_AT_ONCE = 4;

/** What the seeds must have tried, so that they cannot turn into a walk in the park unnoticed. */
const EXPECTED = [
  ...["create", "fork", "append", "delete", "undelete", "purge", "lease", "renew", "release", "saveCheckpoint"],
  ...["head", "read", "entry", "path", "list", "count", "search", "aggregate", "idle", "leaseOf", "checkpoints"],
  ...["loadCheckpoint", "deleteCheckpoint"],
]
  .map((kind) => `${kind} done`)
  .concat(
    ["CONFLICT", "CAPACITY", "LEASE_LOST", "ENTRY_EXISTS", "UNKNOWN_ENTRY", "INVALID_ENTRY"].map((c) => `append ${c}`),
  )
  .concat(["append SESSION_NOT_FOUND", "append SESSION_CLOSED", "lease SESSION_BUSY", "lease SESSION_NOT_FOUND"])
  .concat(["create cannot be made", "fork cannot be made", "saveCheckpoint CHECKPOINT_EXISTS"]);

// `npm run torture` chooses a store and other seeds.
const { SKEIN_SIMULATION_STORE: chosen, SKEIN_SIMULATION_SEEDS: range } = process.env;
const [first = 1, chosenLast] = range?.split("-").map(Number) ?? [];

/** Compares each store of a kind, whatever its client, with memory. A kind has a file of its own, so that several run at once. */
export function compareStores(kind: string): void {
  const all = everyDriver.filter(({ name }) => kindOf(name) === kind);
  const compared = all.filter(({ name }) => chosen === undefined || name.startsWith(chosen));

  test(`there are ${kind} stores to compare, and the same seed draws the same numbers`, (context) => {
    const missing = missingBackends.find(({ name }) => kindOf(name) === kind);
    if (missing !== undefined) skipBecause(context, missing.reason);
    expect(compared.length).toBeGreaterThan(0);
    const draw = (seed: number) => {
      const random = new SeededRandom(seed);
      return Array.from({ length: 20 }, () => random.below(1000));
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(new Set(draw(7)).size).toBeGreaterThan(10);
  });

  for (const [index, backend] of compared.entries())
    compareStore(backend, chosenLast ?? (index > 0 ? SEEDS_AGAIN : SEEDS));
}

function compareStore(backend: Backend, last: number): void {
  describe(`the ${backend.name} store answers as memory does, through two clients`, () => {
    const outcomes = new Map<string, number>();
    for (let start = first; start <= last; start += SEEDS_A_TEST) {
      const end = Math.min(last, start + SEEDS_A_TEST - 1);
      test(`for seeds ${start} to ${end}`, () => simulateAll(backend, start, end, outcomes));
    }

    test("to requests of every kind, whether they can be done or not", (context) => {
      if (last - first + 1 < SEEDS) skipBecause(context, "only some of the seeds were tried");
      expect(EXPECTED.filter((outcome) => !outcomes.has(outcome))).toEqual([]);
    });
  });
}

/** Goes through seeds, some at a time: much of the time of a store goes by waiting. */
async function simulateAll(backend: Backend, from: number, to: number, outcomes: Map<string, number>): Promise<void> {
  let next = from;
  const work = async (): Promise<void> => {
    while (next <= to) {
      const seed = next++;
      for (const [outcome, count] of await simulate(backend, seed))
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: SEEDS_AT_ONCE }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}
