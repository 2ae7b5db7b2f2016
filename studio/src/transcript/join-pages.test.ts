import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/log/entry.ts";
import { continues, joinLatest, joinOlder } from "./join-pages.ts";

const entry = (number: number, parent: number | null = number - 1): Entry =>
  ({ id: `e${number}`, parentId: parent === null ? null : `e${parent}`, seq: number, type: "custom" }) as never;
const range = (from: number, to: number): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, index) => entry(from + index));
const ids = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id);

test("keeps the older entries, and the same objects, when the path grew", () => {
  const held = { entries: range(3, 8), older: "e3" };
  const joined = joinLatest(held, { items: range(6, 10), next: "e6" });
  expect(ids(joined.entries)).toEqual(ids(range(3, 10)));
  expect(joined.entries[4]).toBe(held.entries[4]);
  expect(joined.older).toBe("e3");
});

test("goes on where the page's parent is when more came than a page holds", () => {
  const joined = joinLatest({ entries: range(3, 5), older: "e3" }, { items: range(6, 10), next: "e6" });
  expect(ids(joined.entries)).toEqual(ids(range(3, 10)));
});

test("leaves out what is not on the path any more after the leaf moved", () => {
  const items = [entry(5), entry(20, 5)];
  expect(ids(joinLatest({ entries: range(3, 8), older: null }, { items, next: "e5" }).entries)).toEqual([
    "e3",
    "e4",
    "e5",
    "e20",
  ]);
});

test("begins anew where the page has nothing to do with what was held", () => {
  const joined = joinLatest({ entries: range(3, 8), older: "e3" }, { items: range(50, 52), next: "e50" });
  expect(joined).toEqual({ entries: range(50, 52), older: "e50" });
  expect(joinLatest({ entries: range(3, 8), older: "e3" }, { items: [], next: null })).toEqual({
    entries: [],
    older: null,
  });
});

test("puts an older page in front, unless another path is held by now", () => {
  const held = { entries: range(3, 4), older: "e3" };
  expect(ids(joinOlder(held, "e3", { items: range(1, 2), next: "e1" }).entries)).toEqual(ids(range(1, 4)));
  expect(joinOlder(held, "e9", { items: range(1, 2), next: null })).toBe(held);
});

test("knows a page that leaves a gap to what is held", () => {
  const held = { entries: range(3, 8), older: "e3" };
  expect(continues(held, { items: range(9, 10), next: "e9" })).toBe(true);
  expect(continues(held, { items: range(7, 10), next: "e7" })).toBe(true);
  expect(continues(held, { items: range(12, 14), next: "e12" })).toBe(false);
  expect(continues(null, { items: range(12, 14), next: "e12" })).toBe(true);
});
