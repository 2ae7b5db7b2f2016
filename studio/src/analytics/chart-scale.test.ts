import { expect, test } from "vitest";
import { labelStride, ticksUpTo } from "./chart-scale.ts";

test("puts lines at round values up to the largest value", () => {
  expect(ticksUpTo(97, 4)).toEqual([0, 50, 100]);
  expect(ticksUpTo(0.0042, 4)).toEqual([0, 0.002, 0.004, 0.006]);
  expect(ticksUpTo(8, 4)).toEqual([0, 2, 4, 6, 8]);
  expect(ticksUpTo(0, 4)).toEqual([0, 1]);
});

test("draws few lines in ascending order for any largest value", () => {
  for (let exponent = -8; exponent < 12; exponent++) {
    const largest = 3.7 * 10 ** exponent;
    const ticks = ticksUpTo(largest, 4);
    expect(ticks.length).toBeLessThanOrEqual(6);
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(largest);
  }
});

test("leaves out labels until the others fit", () => {
  expect(labelStride(7, 700, 60)).toBe(1);
  expect(labelStride(30, 600, 60)).toBe(3);
  expect(labelStride(10, 0, 60)).toBe(10);
});
