import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "../internal/json.ts";
import type { SessionTurn } from "../session/state/state.ts";
import { RoleIsolation } from "./role-isolation.ts";

function turn(turnId: string, metadata: JsonObject): SessionTurn {
  return { turnId, role: "user", content: "", timestamp: "2024-01-01T00:00:00.000Z", metadata, tokensUsed: 0, cost: 0 };
}

const seenBy = (agent: string, metadata: JsonObject): boolean =>
  new RoleIsolation().filterForAgent([turn("t", metadata)], agent).length === 1;

test("shows a turn to everyone, unless its metadata limits that", () => {
  expect(seenBy("a", {})).toBe(true);
  expect(seenBy("a", { visibleTo: null, hiddenFrom: null })).toBe(true);
});

test("shows a turn with visibleTo to the agents in the list and to no others", () => {
  const metadata = { visibleTo: ["a", "b"] };
  expect([seenBy("a", metadata), seenBy("b", metadata), seenBy("c", metadata)]).toEqual([true, true, false]);
  expect(seenBy("a", { visibleTo: [] })).toBe(false);
});

test("hides a turn with hiddenFrom from the agents in the list", () => {
  const metadata = { hiddenFrom: ["a"] };
  expect([seenBy("a", metadata), seenBy("b", metadata)]).toEqual([false, true]);
  expect(seenBy("a", { hiddenFrom: [] })).toBe(true);
});

test("prefers visibleTo to hiddenFrom", () => {
  const metadata = { visibleTo: ["a"], hiddenFrom: ["a"] };
  expect([seenBy("a", metadata), seenBy("b", metadata)]).toEqual([true, false]);
});

test("treats a string as a list with one name, and hides the turn for invalid values", () => {
  expect([seenBy("a", { visibleTo: "a" }), seenBy("b", { visibleTo: "a" })]).toEqual([true, false]);
  expect([seenBy("a", { hiddenFrom: "a" }), seenBy("b", { hiddenFrom: "a" })]).toEqual([false, true]);
  // A part of a name is not the name.
  expect(seenBy("a", { visibleTo: "ab" })).toBe(false);
  for (const wrong of [1, true, {}, { a: true }]) {
    expect([seenBy("a", { visibleTo: wrong }), seenBy("a", { hiddenFrom: wrong })]).toEqual([false, false]);
  }
});

test("keeps the order and adds nothing, for any metadata", () => {
  const names = fc.constantFrom("a", "b", "c");
  const list = fc.option(fc.array(names), { nil: undefined });
  const metadata = fc.record({ visibleTo: list, hiddenFrom: list });
  fc.assert(
    fc.property(fc.array(metadata), names, (all, agent) => {
      const turns = all.map((each, index) => turn(`t${index}`, JSON.parse(JSON.stringify(each)) as JsonObject));
      const expected = turns.filter((_, index) => {
        const { visibleTo, hiddenFrom } = all[index] ?? {};
        return visibleTo === undefined ? !(hiddenFrom ?? []).includes(agent) : visibleTo.includes(agent);
      });
      expect(new RoleIsolation().filterForAgent(turns, agent)).toEqual(expected);
    }),
  );
});
