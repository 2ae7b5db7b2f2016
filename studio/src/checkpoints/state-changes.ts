import type { JsonObject, JsonValue } from "../../../src/internal/json.ts";
import type { SessionTurn } from "../../../src/session/state/state.ts";
import type { KeyDiff, StateDiff } from "../../../src/session/state/state-diff.ts";
import { formatCost } from "../sessions/list/amounts.ts";

/** A value that differs between two states; undefined where a state lacks it. */
export interface ValueChange {
  readonly name: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
  /** Set for an amount of US dollars. */
  readonly money?: true;
}

/** The differences between two states, with old and new values. */
export interface StateChanges {
  readonly added: readonly SessionTurn[];
  readonly removed: readonly SessionTurn[];
  readonly variables: readonly ValueChange[];
  readonly totals: readonly ValueChange[];
  /** Settings and other fields. */
  readonly fields: readonly ValueChange[];
  readonly metadata: readonly ValueChange[];
}

const TOTALS: Readonly<Record<string, string>> = {
  turnCount: "Turns",
  totalTokens: "Tokens",
  totalCost: "Cost",
};

const FIELDS: Readonly<Record<string, string>> = {
  name: "Name",
  status: "Status",
  systemPrompt: "System prompt",
  activeTools: "Tools",
  activeSkills: "Skills",
};

/**
 * Combines the two diffs between the same states, one for each direction: a diff only holds the new values, so the
 * reverse diff provides the old ones.
 */
export function stateChanges(forward: JsonObject, backward: JsonObject): StateChanges {
  const [to, from] = [forward as StateDiff, backward as StateDiff];
  const fields = valueChanges(to.fields, from.fields);
  return {
    added: to.turns?.splices.flatMap(({ insert }) => insert) ?? [],
    removed: from.turns?.splices.flatMap(({ insert }) => insert) ?? [],
    variables: valueChanges(to.variables, from.variables),
    metadata: valueChanges(to.metadata, from.metadata),
    totals: named(fields, TOTALS),
    fields: named(fields, FIELDS),
  };
}

/** Whether two states are equal in everything that is shown. */
export function isNothing(changes: StateChanges): boolean {
  return Object.values(changes).every((list: readonly unknown[]) => list.length === 0);
}

/** A value, formatted for people. */
export function valueText(value: JsonValue | undefined, money = false): string {
  if (value === undefined || value === null) return "none";
  if (typeof value === "number") return money ? formatCost(value) : value.toLocaleString("en");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function valueChanges(to: KeyDiff | undefined, from: KeyDiff | undefined): readonly ValueChange[] {
  const names = new Set([...keysOf(to), ...keysOf(from)]);
  return [...names].sort().map((name) => ({ name, before: ownValue(from, name), after: ownValue(to, name) }));
}

function keysOf(diff: KeyDiff | undefined): readonly string[] {
  return [...Object.keys(diff?.set ?? {}), ...(diff?.unset ?? [])];
}

function ownValue(diff: KeyDiff | undefined, name: string): JsonValue | undefined {
  const set = diff?.set ?? {};
  return Object.hasOwn(set, name) ? set[name] : undefined;
}

/** The changes of fields with a readable name, in the order of `names`; other fields are internal to the server. */
function named(changes: readonly ValueChange[], names: Readonly<Record<string, string>>): readonly ValueChange[] {
  return Object.entries(names).flatMap(([field, name]) =>
    changes
      .filter((change) => change.name === field)
      .map((change) => (field === "totalCost" ? { ...change, name, money: true } : { ...change, name })),
  );
}
