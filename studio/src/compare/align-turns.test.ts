import { expect, test } from "vitest";
import { alignTurns } from "./align-turns.ts";
import type { TurnRow } from "./turn-row.ts";

function row(kind: string, text: string, id = `${kind}-${text}`): TurnRow {
  return { id, kind, title: kind, text, isMarkdown: true, calls: [], failed: false, tokens: 0, cost: null };
}

const shown = (left: readonly TurnRow[], right: readonly TurnRow[]): string[] =>
  alignTurns(left, right).map((pair) => `${pair.left?.text ?? "-"}${pair.same ? "=" : "|"}${pair.right?.text ?? "-"}`);

test("pairs turns of the same role, in order", () => {
  const left = [row("user", "a"), row("assistant", "b")];
  const right = [row("user", "x"), row("tool", "t"), row("assistant", "y")];
  expect(shown(left, right)).toEqual(["a|x", "-|t", "b|y"]);
});

test("prefers equal turns, as after a merge", () => {
  const left = [row("user", "own"), row("assistant", "answer"), row("user", "q", "1"), row("assistant", "a", "2")];
  const right = [row("user", "q", "1"), row("assistant", "a", "2")];
  expect(shown(left, right)).toEqual(["own|-", "answer|-", "q=q", "a=a"]);
});

test("leaves the rest of the longer side unpaired, and returns nothing for two empty sides", () => {
  expect(shown([row("user", "a")], [row("user", "a", "other"), row("assistant", "b")])).toEqual(["a=a", "-|b"]);
  expect(shown([], [])).toEqual([]);
});

test("treats calls with different arguments as different", () => {
  const call = (text: string): TurnRow => ({
    ...row("assistant", "", text),
    calls: [{ id: "1", name: "run", arguments: text }],
  });
  expect(alignTurns([call("a")], [call("b")])[0]?.same).toBe(false);
});

test("pairs very long sides by position", () => {
  const many = (id: string): TurnRow[] =>
    Array.from({ length: 1200 }, (_, index) => row("user", `${index}`, `${id}${index}`));
  expect(alignTurns(many("a"), many("b"))).toHaveLength(1200);
});
