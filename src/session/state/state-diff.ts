import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { type SessionState, frozenCopy } from "./state.ts";
import { applyTurnsDiff, diffTurns, type TurnsDiff } from "./turn-splices.ts";

/** The keys of an object that have a new value, and those that were removed. */
export interface KeyDiff {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
}

/** The difference between two states, as JSON; unchanged parts are left out. */
export interface StateDiff {
  /** The fields of the state, other than the three below. */
  readonly fields?: KeyDiff;
  readonly metadata?: KeyDiff;
  readonly variables?: KeyDiff;
  readonly turns?: TurnsDiff;
}

/**
 * Computes and applies differences between two states, as small data that can be stored.
 *
 * - `apply(old, compute(old, next))` equals `next` for any two states, also if the diff was converted to JSON and back.
 * - Equal states have an empty diff.
 * - A new turn adds only that turn to the diff, however many there are.
 * - The two states are not changed; results are frozen.
 */
export const StateDiff: {
  /** The diff from `old` to `next`. @throws {SessionError} `INVALID_VALUE` for a state with a value that is not JSON. */
  readonly compute: (old: SessionState, next: SessionState) => StateDiff;
  /**
   * Applies a diff to the state from which it was computed.
   *
   * @throws {SessionError} `CONFLICT` if the turns are others, `INVALID_VALUE` if it is not a diff.
   */
  readonly apply: (base: SessionState, diff: StateDiff) => SessionState;
} = Object.freeze({ compute, apply });

type Fields = Readonly<Record<string, unknown>>;

const PARTS: readonly string[] = ["fields", "metadata", "variables", "turns"];

function compute(old: SessionState, next: SessionState): StateDiff {
  const { turns: oldTurns, metadata: oldMetadata, variables: oldVariables, ...oldFields } = old;
  const { turns, metadata, variables, ...fields } = next;
  const parts: Record<string, unknown> = {
    fields: diffKeys(oldFields, fields),
    metadata: diffKeys(oldMetadata, metadata),
    variables: diffKeys(oldVariables, variables),
    turns: diffTurns(oldTurns, turns),
  };
  return Object.freeze(Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== null)));
}

function apply(base: SessionState, diff: StateDiff): SessionState {
  checkDiff(diff);
  const { turns, metadata, variables, ...fields } = base;
  const changed = diff.turns === undefined ? turns : applyTurnsDiff(turns, diff.turns);
  return Object.freeze({
    ...applyKeys(fields, diff.fields),
    turns: Object.freeze(changed.map((turn) => frozenCopy(turn, "a turn"))),
    metadata: applyKeys(metadata, diff.metadata),
    variables: applyKeys(variables, diff.variables),
  }) as unknown as SessionState;
}

function diffKeys(old: Fields, next: Fields): KeyDiff | null {
  const set = Object.entries(next).filter(
    ([key, value]) => value !== undefined && !sameJson(ownValue(old, key), value),
  );
  const unset = Object.keys(old).filter((key) => old[key] !== undefined && ownValue(next, key) === undefined);
  if (set.length === 0 && unset.length === 0) return null;
  const copies = set.map(([key, value]) => [key, frozenCopy(value, key) as JsonValue] as const);
  return Object.freeze({
    ...(set.length === 0 ? {} : { set: Object.freeze(Object.fromEntries(copies)) }),
    ...(unset.length === 0 ? {} : { unset: Object.freeze(unset) }),
  });
}

function applyKeys(base: Fields, { set = {}, unset = [] }: KeyDiff = {}): JsonObject {
  const removed = new Set(unset);
  const kept = Object.entries(base).filter(([key, value]) => value !== undefined && !removed.has(key));
  const entries = [...kept, ...Object.entries(set)];
  return Object.freeze(Object.fromEntries(entries.map(([key, value]) => [key, frozenCopy(value, key) as JsonValue])));
}

/** The object's own property; inherited ones such as `constructor` are ignored. */
function ownValue(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function checkDiff(diff: unknown): void {
  if (!isObject(diff)) throw notADiff("it is not an object");
  const unknown = Object.keys(diff).find((key) => !PARTS.includes(key));
  if (unknown !== undefined) throw notADiff(`it has a part ${JSON.stringify(unknown)}`);
  for (const part of ["fields", "metadata", "variables"] as const) checkKeys(part, diff[part]);
  if (diff.turns !== undefined && !isTurnsDiff(diff.turns)) throw notADiff("its turns are not ranges to replace");
}

function checkKeys(part: string, keys: unknown): void {
  if (keys === undefined) return;
  if (!isObject(keys)) throw notADiff(`its ${part} are not an object`);
  const { set = {}, unset = [] } = keys;
  if (isObject(set) && Array.isArray(unset) && unset.every((key) => typeof key === "string")) return;
  throw notADiff(`its ${part} have no valid set and unset`);
}

function isTurnsDiff(value: unknown): boolean {
  if (!isObject(value) || !isCount(value.from) || !Array.isArray(value.splices)) return false;
  return value.splices.every(
    (splice: unknown) =>
      isObject(splice) &&
      isCount(splice.at) &&
      isCount(splice.remove) &&
      (splice.after === null || typeof splice.after === "string") &&
      Array.isArray(splice.insert) &&
      splice.insert.every((turn: unknown) => isObject(turn) && typeof turn.turnId === "string"),
  );
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notADiff(problem: string): SessionError {
  return new SessionError("INVALID_VALUE", `The diff of a state is not valid: ${problem}; use what compute returned.`);
}
