import type { JsonObject, JsonValue } from "../../../src/internal/json.ts";
import type { SessionTurn } from "../../../src/session/state/state.ts";
import type { KeyDiff, StateDiff } from "../../../src/session/state/state-diff.ts";
import { formatCost } from "../sessions/list/amounts.ts";

/** A value that two states have differently; undefined where one has none. */
export interface ValueChange {
  readonly name: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
  /** Whether it is an amount of US dollars. */
  readonly money?: true;
}

/** What is different between two states, with what it was and what it is. */
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
 * Puts two diffs of the same states together, one for each direction: a diff only says what a value becomes, and so each
 * says what the other leaves out.
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

/** Whether two states are the same in all that is shown. */
export function isNothing(changes: StateChanges): boolean {
  return Object.values(changes).every((list: readonly unknown[]) => list.length === 0);
}

/** A value as a reader expects it. */
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

/** The changes that have a name for readers, in the order of the names; the rest is the server's own account. */
function named(changes: readonly ValueChange[], names: Readonly<Record<string, string>>): readonly ValueChange[] {
  return Object.entries(names).flatMap(([field, name]) =>
    changes
      .filter((change) => change.name === field)
      .map((change) => (field === "totalCost" ? { ...change, name, money: true } : { ...change, name })),
  );
}
