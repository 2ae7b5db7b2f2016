import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scheduleCalls, startsAtOnce, type Turn } from "./tool-calls.ts";

/** Runs a schedule in which the given call finishes next, and returns the order of events. */
async function play(turns: readonly Turn[], choose: (running: readonly number[]) => number): Promise<string[]> {
  const happened: string[] = [];
  const running = new Map<number, () => void>();
  const calls = scheduleCalls(
    turns,
    (index) =>
      new Promise<void>((resolve) => {
        happened.push(`start ${index}`);
        running.set(index, resolve);
      }),
  );
  for (let finished = 0; finished < turns.length; finished++) {
    const next = choose([...running.keys()]);
    happened.push(`end ${next}`);
    (running.get(next) as () => void)();
    running.delete(next);
    // What waited for that call starts a few microtasks later.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(calls);
  return happened;
}

const turn = fc.record({
  alone: fc.boolean().map((value) => value),
  key: fc.option(fc.constantFrom("a", "b", "c"), { nil: null }),
});
const turnsArbitrary = fc.array(
  fc.oneof({ weight: 4, arbitrary: turn.map((each) => ({ ...each, alone: false })) }, { weight: 1, arbitrary: turn }),
  { minLength: 1, maxLength: 9 },
);

describe("a schedule of calls", () => {
  test("keeps the order of equal keys, runs exclusive calls alone, and delays no other call", async () => {
    await fc.assert(
      fc.asyncProperty(turnsArbitrary, fc.infiniteStream(fc.nat()), async (turns, picks) => {
        const happened = await play(turns, (running) => {
          // If nothing runs while some calls have not finished, that is a deadlock.
          expect(running.length).toBeGreaterThan(0);
          return running[(picks.next().value as number) % running.length] as number;
        });
        expect(happened).toHaveLength(turns.length * 2);
        const at = (what: string): number => happened.indexOf(what);
        for (const [later, b] of turns.entries()) {
          const waits: number[] = [];
          for (const [earlier, a] of turns.slice(0, later).entries()) {
            const ordered = a.alone || b.alone || (a.key !== null && a.key === b.key);
            if (!ordered) continue;
            waits.push(at(`end ${earlier}`));
            expect(at(`end ${earlier}`)).toBeLessThan(at(`start ${later}`));
          }
          // It starts at the very moment when the last of those it waits for is done: between them only others start.
          const from = Math.max(-1, ...waits);
          const between = happened.slice(from + 1, at(`start ${later}`));
          expect(between.filter((what) => what.startsWith("end"))).toEqual([]);
        }
      }),
      { numRuns: 150 },
    );
  });

  test("predicts correctly which calls start immediately", async () => {
    await fc.assert(
      fc.asyncProperty(turnsArbitrary, async (turns) => {
        const started: number[] = [];
        void scheduleCalls(turns, (index) => {
          started.push(index);
          return new Promise<never>(() => {});
        });
        await new Promise((resolve) => setImmediate(resolve));
        const foretold = startsAtOnce(turns).flatMap((starts, index) => (starts ? [index] : []));
        expect(foretold).toEqual(started);
      }),
      { numRuns: 150 },
    );
  });

  test("does not start a call that waits for a failed one, and fails it with the same error", async () => {
    const failure = new Error("gone");
    const started: number[] = [];
    const calls = scheduleCalls(
      [
        { alone: false, key: "a" },
        { alone: false, key: "a" },
        { alone: false, key: null },
      ],
      async (index) => {
        started.push(index);
        if (index === 0) throw failure;
      },
    );
    expect(await Promise.allSettled(calls)).toEqual([
      { status: "rejected", reason: failure },
      { status: "rejected", reason: failure },
      { status: "fulfilled", value: undefined },
    ]);
    expect(started).toEqual([0, 2]);
  });
});
