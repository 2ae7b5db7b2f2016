import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/log/entry.ts";
import { continues, joinLatest, joinNewer, joinOlder } from "./join-pages.ts";

const entry = (number: number, parent: number | null = number - 1): Entry =>
  ({ id: `e${number}`, parentId: parent === null ? null : `e${parent}`, seq: number, type: "custom" }) as never;
const range = (from: number, to: number): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, index) => entry(from + index));
const ids = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id);

test("keeps the older entries, as the same objects, when the path grows", () => {
  const held = { entries: range(3, 8), older: "e3", newer: null };
  const joined = joinLatest(held, { items: range(6, 10), next: "e6" });
  expect(ids(joined.entries)).toEqual(ids(range(3, 10)));
  expect(joined.entries[4]).toBe(held.entries[4]);
  expect(joined.older).toBe("e3");
});

test("joins pages if more entries arrive than fit into a page", () => {
  const joined = joinLatest({ entries: range(3, 5), older: "e3", newer: null }, { items: range(6, 10), next: "e6" });
  expect(ids(joined.entries)).toEqual(ids(range(3, 10)));
});

test("drops entries that are no longer on the path after the leaf has moved", () => {
  const items = [entry(5), entry(20, 5)];
  expect(ids(joinLatest({ entries: range(3, 8), older: null, newer: null }, { items, next: "e5" }).entries)).toEqual([
    "e3",
    "e4",
    "e5",
    "e20",
  ]);
});

test("starts again if the page has no connection to the held entries", () => {
  const joined = joinLatest({ entries: range(3, 8), older: "e3", newer: null }, { items: range(50, 52), next: "e50" });
  expect(joined).toEqual({ entries: range(50, 52), older: "e50", newer: null });
  expect(joinLatest({ entries: range(3, 8), older: "e3", newer: null }, { items: [], next: null })).toEqual({
    entries: [],
    older: null,
    newer: null,
  });
});

test("prepends an older page, unless another path is held by now", () => {
  const held = { entries: range(3, 4), older: "e3", newer: null };
  expect(ids(joinOlder(held, "e3", { items: range(1, 2), next: "e1" }).entries)).toEqual(ids(range(1, 4)));
  expect(joinOlder(held, "e9", { items: range(1, 2), next: null })).toBe(held);
});

test("appends a newer page, unless another path is held by now", () => {
  const held = { entries: range(3, 4), older: "e3", newer: "e4" };
  const joined = joinNewer(held, "e4", { items: range(5, 6), next: null });
  expect([ids(joined.entries), joined.newer]).toEqual([ids(range(3, 6)), null]);
  expect(joinNewer(held, "e9", { items: range(5, 6), next: null })).toBe(held);
});

test("detects a page with a gap to the held entries", () => {
  const held = { entries: range(3, 8), older: "e3", newer: null };
  expect(continues(held, { items: range(9, 10), next: "e9" })).toBe(true);
  expect(continues(held, { items: range(7, 10), next: "e7" })).toBe(true);
  expect(continues(held, { items: range(12, 14), next: "e12" })).toBe(false);
  expect(continues(null, { items: range(12, 14), next: "e12" })).toBe(true);
});
