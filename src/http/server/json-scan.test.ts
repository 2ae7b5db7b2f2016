import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HttpError } from "./http-error.ts";
import { JsonScan } from "./json-scan.ts";

const WIDE = { depthMax: 200, valuesMax: 1_000_000 };

function scanOf(text: string, cuts: readonly number[] = [], bounds = WIDE): JsonScan {
  const bytes = Buffer.from(text);
  const scan = new JsonScan(bounds);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  let from = 0;
  for (const end of ends) {
    scan.add(bytes.subarray(from, end));
    from = end;
  }
  return scan;
}

/** Counts every value, containers and their contents. */
function countOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, item) => sum + countOf(item), 1);
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("a scan of JSON", () => {
  test("never counts fewer values than there are, however the bytes are divided", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.array(fc.nat(), { maxLength: 5 }), (value, cuts) => {
        const text = JSON.stringify(value);
        const { values } = scanOf(text, cuts);
        expect(values).toBeGreaterThanOrEqual(countOf(value));
        // An opened list is counted once for itself and may be counted once more for its first item.
        expect(values).toBeLessThanOrEqual(2 * countOf(value) + 1);
        expect(scanOf(text).values).toBe(values);
      }),
    );
  });

  test("refuses exactly the JSON that nests deeper than the limit, however the bytes are divided", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.array(fc.nat(), { maxLength: 5 }), (value, cuts) => {
        const depth = depthOf(value);
        const text = JSON.stringify(value);
        scanOf(text, cuts, { depthMax: depth, valuesMax: 1_000_000 });
        if (depth > 0)
          expect(() => scanOf(text, cuts, { depthMax: depth - 1, valuesMax: 1_000_000 })).toThrow(HttpError);
      }),
    );
  });

  test("is not misled by quotes, brackets and backslashes inside of texts", () => {
    for (const text of ['["\\\\"]', '["\\"[[[[,,,,"]', '{"[{\\"":"}],\\\\"}', '["\\\\\\"]]]"]']) {
      const value = JSON.parse(text) as unknown;
      const cuts = [...Buffer.from(text).keys()];
      expect(scanOf(text, cuts, { depthMax: 1, valuesMax: 3 }).values).toBe(countOf(value));
    }
  });

  test("stops at the first value above the limit", () => {
    expect(() => scanOf("[1,2,3]", [], { depthMax: 9, valuesMax: 4 })).not.toThrow();
    expect(() => scanOf("[1,2,3,4]", [], { depthMax: 9, valuesMax: 4 })).toThrow("more than 4 values");
  });
});
