import { expect, test } from "vitest";
import { differencesOf } from "./setting-differences.ts";

test("lists values that differ, ignoring the order of keys", () => {
  const left = { same: { x: 1, y: 2 }, changed: 1, gone: null };
  const right = { same: { y: 2, x: 1 }, changed: 2 };
  expect(
    differencesOf({ variables: left, systemPrompt: null }, { variables: right, systemPrompt: "Be brief." }),
  ).toEqual([
    { name: "System prompt", left: null, right: '"Be brief."' },
    { name: "changed", left: "1", right: "2" },
    { name: "gone", left: "null", right: null },
  ]);
});
