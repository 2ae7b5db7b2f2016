import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PersistentVector } from "./persistent-vector.ts";

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

describe("a persistent vector", () => {
  test.for([0, 1, 31, 32, 33, 63, 64, 65, 1023, 1024, 1055, 1056, 1057, 1088, 32_767, 32_768, 32_800, 32_801, 40_000])(
    "holds %i items in order, appended at once or one by one",
    (count) => {
      const atOnce = PersistentVector.empty<number>().append(numbers(0, count));
      expect([...atOnce]).toEqual(numbers(0, count));
      let oneByOne = PersistentVector.empty<number>();
      for (let i = 0; i < count; i++) oneByOne = oneByOne.append([i]);
      expect([...oneByOne]).toEqual(numbers(0, count));
      for (const i of [0, 31, 32, 1055, 1056, count - 1])
        expect(oneByOne.at(i)).toBe(i < count && i >= 0 ? i : undefined);
    },
  );

  test("appending does not change the list, even if it is done several times", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(1100)), { maxLength: 25 }), (steps) => {
        const made: { vector: PersistentVector<number>; model: number[] }[] = [
          { vector: PersistentVector.empty(), model: [] },
        ];
        let next = 0;
        for (const [which, count] of steps) {
          const source = made[which % made.length] as (typeof made)[number];
          const items = numbers(next, next + count);
          next += count;
          made.push({ vector: source.vector.append(items), model: [...source.model, ...items] });
        }
        for (const { vector, model } of made) {
          expect([...vector]).toEqual(model);
          expect(vector.length).toBe(model.length);
        }
      }),
      { numRuns: 60 },
    );
  });

  test.for([0, 1, 32, 33, 64, 1024, 1056, 1057, 32_768, 32_801, 40_000])(
    "divides %i items into a few parts",
    (count) => {
      const parts = [...PersistentVector.empty<number>().append(numbers(0, count)).parts()];
      expect(parts.flatMap(({ items }) => [...items()])).toEqual(numbers(0, count));
      expect(parts.length).toBeLessThanOrEqual(3 * 32 + 1);
    },
  );

  test("a list made by appending shares most parts, so that each item is in few new parts while a list grows", () => {
    const seen = new WeakSet<object>();
    let vector = PersistentVector.empty<number>();
    let fresh = 0;
    for (let length = 0; length < 40_000; length += 50) {
      vector = vector.append(numbers(length, length + 50));
      for (const { key, items } of vector.parts()) {
        if (!seen.has(key)) fresh += [...items()].length;
        seen.add(key);
      }
    }
    expect(fresh).toBeLessThanOrEqual(4 * 40_000);
  });

  test("at returns undefined outside of the bounds", () => {
    const three = PersistentVector.empty<number>().append([1, 2, 3]);
    for (const index of [-1, 3, 1.5, Number.NaN, 2 ** 31]) expect(three.at(index)).toBeUndefined();
  });

  test("appending nothing returns the same list", () => {
    const three = PersistentVector.empty<number>().append([1, 2, 3]);
    expect(three.append([])).toBe(three);
  });
});
