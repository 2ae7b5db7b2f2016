import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "./entry.ts";
import {
  readSettings,
  settingsFrom,
  type SettingsNode,
  SettingsTable,
  stepSettings,
  wholeSettings,
} from "./settings.ts";

interface Change {
  readonly set: Record<string, JsonValue>;
  readonly unset: readonly string[];
}

const key = fc.constantFrom("a", "b", "c", "7", "constructor", "toString");
const change: fc.Arbitrary<Change> = fc.record({
  set: fc.dictionary(key, fc.oneof(fc.integer(), fc.constant(["x"])), { noNullPrototype: true }),
  unset: fc.uniqueArray(key, { maxLength: 2 }),
});

/** The nodes of a path on which these changes were made one after the other. */
function nodesOf(changes: readonly Change[]): { readonly table: SettingsTable; readonly last: SettingsNode | null } {
  const table = new SettingsTable();
  let last: SettingsNode | null = null;
  for (const [seq, each] of changes.entries()) {
    last = stepSettings(last, { type: "variables", seq, ...each } as unknown as EntryOf<"variables">, table.at);
    table.add(last);
  }
  return { table, last };
}

/** The result of the changes, applied one at a time. */
function variablesAfter(changes: readonly Change[]): Record<string, JsonValue> {
  const variables: Record<string, JsonValue> = {};
  for (const { set, unset } of changes) {
    for (const name of unset) delete variables[name];
    for (const [name, value] of Object.entries(set)) variables[name] = value;
  }
  return variables;
}

test("settings read from nodes, copied or taken, equal the changes applied one at a time", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
      const { table, last } = nodesOf(changes);
      const expected = variablesAfter(changes);
      expect((await readSettings(last, async (seq) => table.at(seq))).variables).toEqual(expected);
      // Nodes as a store parses them from its rows.
      const nodeAt = async (seq: number) => JSON.parse(JSON.stringify(table.at(seq))) as SettingsNode;
      const taken = await readSettings(last, nodeAt, { taken: true });
      expect(taken.variables).toEqual(expected);
      expect(Object.isFrozen(taken.variables)).toBe(true);
      expect((await readSettings(last, async (seq) => table.at(seq))).variables).toEqual(expected);
    }),
    { numRuns: 200 },
  );
});

test("frozen settings of the first format are copied before they change", async () => {
  const settings = { variables: { a: 1 }, systemPrompt: null, activeTools: [], activeSkills: [] };
  const whole = wholeSettings(settings, 0);
  const last = { count: 1, seq: 1, change: { set: { b: 2 } }, before: 0 };
  expect((await readSettings(last, async () => whole, { taken: true })).variables).toEqual({ a: 1, b: 2 });
  expect([whole.change?.set, last.change.set]).toEqual([{ a: 1 }, { b: 2 }]);
});

test("shared nodes do not change", () => {
  const [oldest, last] = [
    { count: 2, seq: 0, change: { set: { a: 1 } }, before: null },
    { count: 3, seq: 1, change: { set: { b: 2 }, unset: ["a"] }, before: 0 },
  ];
  expect(settingsFrom([last, oldest]).variables).toEqual({ b: 2 });
  expect([oldest.change.set, Object.isFrozen(oldest.change.set)]).toEqual([{ a: 1 }, false]);
});
