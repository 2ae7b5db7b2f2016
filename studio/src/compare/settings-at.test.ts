import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/log/entry.ts";
import { differencesOf, foldSettings } from "./settings-at.ts";

const change = (set: Record<string, string>, unset: string[] = [], systemPrompt?: string): Entry => ({
  type: "variables",
  id: "",
  parentId: null,
  timestamp: "",
  seq: 0,
  set,
  unset,
  ...(systemPrompt === undefined ? {} : { systemPrompt }),
});

test("adds up the changes of a path", () => {
  const values = foldSettings([change({ a: "1", b: "1" }), change({ b: "2" }, ["a"], "Be brief.")]);
  expect(values).toEqual({ b: "2", "System prompt": "Be brief." });
});

test("names the values that differ, and not those with their keys in another order", () => {
  const left = { same: { x: 1, y: 2 }, changed: 1, gone: null };
  const right = { same: { y: 2, x: 1 }, changed: 2 };
  expect(differencesOf(left, right)).toEqual([
    { name: "changed", left: "1", right: "2" },
    { name: "gone", left: "null", right: null },
  ]);
});
