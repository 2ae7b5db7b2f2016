import { expect, test } from "vitest";
import { LruCache } from "./lru-cache.ts";

const weights = { max: 10, of: (value: string) => value.length };

test("keeps the values that were used last, and evicts the others", () => {
  const cache = new LruCache<number, string>(2);
  for (const key of [1, 2, 3]) cache.set(key, "value");
  expect(cache.get(1)).toBe("value");
  for (const key of [4, 5, 6]) cache.set(key, "value");
  expect([1, 2, 6].map((key) => cache.get(key))).toEqual([undefined, undefined, "value"]);
});

test("holds fewer values if they are heavy", () => {
  const cache = new LruCache<string, string>(100, weights);
  for (const key of ["a", "b", "c", "d"]) cache.set(key, "sixsix");
  expect(["a", "d"].map((key) => cache.get(key))).toEqual([undefined, "sixsix"]);
});

test("does not count the weight of replaced and deleted values", () => {
  const cache = new LruCache<string, string>(100, weights);
  cache.set("kept", "four");
  for (let index = 0; index < 50; index++) cache.set("busy", "five!");
  for (let index = 0; index < 50; index++) {
    cache.set("gone", "");
    cache.delete("busy");
    cache.set("busy", "five!");
  }
  expect(cache.get("kept")).toBe("four");
});
