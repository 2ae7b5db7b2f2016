import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { type SessionState, frozenCopy } from "./state.ts";
import { applyTurnsDiff, diffTurns, type TurnsDiff } from "./turn-splices.ts";

/** Which keys of an object have another value, and which are gone. */
export interface KeyDiff {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
}

/** What turns one state into another, as JSON. What did not change is not in it. */
export interface StateDiff {
  /** The fields of the state itself, other than the three below. */
  readonly fields?: KeyDiff;
  readonly metadata?: KeyDiff;
  readonly variables?: KeyDiff;
  readonly turns?: TurnsDiff;
}

/**
 * The difference between two states, as small data that can be stored and applied later.
 *
 * - `apply(old, compute(old, next))` equals `next` for any two states, also after the diff went through JSON.
 * - Equal states have an empty diff.
 * - A new turn costs the diff that turn, however many there are; turns that both states share are not looked into.
 * - Both states stay as they are; what comes out is frozen.
 */
export const StateDiff: {
  /** What turns `old` into `next`. @throws {SessionError} `INVALID_VALUE` for a state with a value that is not JSON. */
  readonly compute: (old: SessionState, next: SessionState) => StateDiff;
  /**
   * The state that a diff makes of the one it was computed from.
   *
   * @throws {SessionError} `CONFLICT` if the turns are not those it was computed from, `INVALID_VALUE` if it is no diff.
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
  const gone = new Set(unset);
  const kept = Object.entries(base).filter(([key, value]) => value !== undefined && !gone.has(key));
  const entries = [...kept, ...Object.entries(set)];
  return Object.freeze(Object.fromEntries(entries.map(([key, value]) => [key, frozenCopy(value, key) as JsonValue])));
}

/** The object's own value; what every object has, such as `constructor`, is none. */
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
  throw notADiff(`its ${part} do not say what to set and what to unset`);
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
