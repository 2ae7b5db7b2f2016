import { describe, expect, test } from "vitest";
import { skipBecause } from "../skip.ts";
import { type Backend, everyDriver, kindOf, missingBackends } from "../store-backends.ts";
import { SeededRandom } from "./seeded-random.ts";
import { simulate } from "./simulate.ts";

/** `npm run torture` runs further seeds for the given time. */
const SEEDS = 30;
/** Seeds for each further client of the same kind of store. */
const SEEDS_AGAIN = 10;
const SEEDS_PER_TEST = 10;
const SEEDS_AT_ONCE = 4;

/** The outcomes that the seeds must have covered, so that the test cannot become trivial unnoticed. */
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
  .concat(["create cannot be created", "fork cannot be created", "saveCheckpoint CHECKPOINT_EXISTS"]);

// `npm run torture` sets the store and the seeds.
const { SKEIN_SIMULATION_STORE: chosen, SKEIN_SIMULATION_SEEDS: range } = process.env;
const [first = 1, chosenLast] = range?.split("-").map(Number) ?? [];

/** Compares every store of a kind, with each of its clients, with the memory store. Each kind has its own test file, so that they run in parallel. */
export function compareStores(kind: string): void {
  const all = everyDriver.filter(({ name }) => kindOf(name) === kind);
  const compared = all.filter(({ name }) => chosen === undefined || name.startsWith(chosen));

  test(`there is a ${kind} store to compare, and a seed always gives the same random numbers`, (context) => {
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
  describe(`the ${backend.name} store, through two clients, gives the same results as the memory store`, () => {
    const outcomes = new Map<string, number>();
    for (let start = first; start <= last; start += SEEDS_PER_TEST) {
      const end = Math.min(last, start + SEEDS_PER_TEST - 1);
      test(`for seeds ${start} to ${end}`, () => simulateAll(backend, start, end, outcomes));
    }

    test("for every kind of request, successful and refused", (context) => {
      if (last - first + 1 < SEEDS) skipBecause(context, "only some of the seeds were tried");
      expect(EXPECTED.filter((outcome) => !outcomes.has(outcome))).toEqual([]);
    });
  });
}

/** Runs the seeds, a few concurrently, since a store spends much of its time waiting. */
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
