import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { type SessionState, frozenCopy, type SessionTurn } from "./state.ts";

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

/** A range of turns that is replaced by others. */
export interface TurnSplice {
  /** Its start index, in the list from which the diff was computed. */
  readonly at: number;
  /** The id of the turn directly before it; null at the beginning. */
  readonly after: string | null;
  /** How many turns are removed. */
  readonly remove: number;
  /** The turns that are inserted instead. */
  readonly insert: readonly SessionTurn[];
}

/** The difference between two lists of turns. */
export interface TurnsDiff {
  /** The length of the list from which it was computed. */
  readonly from: number;
  /** Sorted by position, without overlap. */
  readonly splices: readonly TurnSplice[];
}

/** The diff from `old` to `next`; null if they are equal. Turns that are in both, in the same order, are left out. */
function diffTurns(old: readonly SessionTurn[], next: readonly SessionTurn[]): TurnsDiff | null {
  let start = 0;
  while (start < Math.min(old.length, next.length) && sameTurn(old[start], next[start])) start++;
  const splices = spliceFrom(start, old, next);
  return splices.length === 0 ? null : Object.freeze({ from: old.length, splices: Object.freeze(splices) });
}

/**
 * Applies a diff to the list from which it was computed.
 *
 * @throws {SessionError} `CONFLICT` if the list is a different one.
 */
function applyTurnsDiff(turns: readonly SessionTurn[], diff: TurnsDiff): readonly SessionTurn[] {
  const out: SessionTurn[] = [];
  let taken = 0;
  if (diff.from !== turns.length) throw otherTurns();
  for (const { at, after, remove, insert } of diff.splices) {
    const position = at === 0 ? null : turns[at - 1]?.turnId;
    if (at < taken || at + remove > turns.length || position !== after) throw otherTurns();
    for (; taken < at; taken++) out.push(turns[taken] as SessionTurn);
    for (const turn of insert) out.push(frozenCopy(turn, "a turn"));
    taken = at + remove;
  }
  for (; taken < turns.length; taken++) out.push(turns[taken] as SessionTurn);
  return out;
}

/** The splices after a common prefix of the length `start`. */
function spliceFrom(start: number, old: readonly SessionTurn[], next: readonly SessionTurn[]): TurnSplice[] {
  const positions = new Map<string, number>();
  for (let index = start; index < old.length; index++) positions.set((old[index] as SessionTurn).turnId, index);
  const splices: TurnSplice[] = [];
  let at = start;
  let insert: SessionTurn[] = [];
  const closeAt = (position: number): void => {
    if (position === at && insert.length === 0) return;
    const after = old[at - 1]?.turnId ?? null;
    splices.push(Object.freeze({ at, after, remove: position - at, insert: Object.freeze(insert) }));
    insert = [];
  };
  for (const turn of next.slice(start)) {
    const position = positions.get(turn.turnId);
    if (position === undefined || position < at || !sameTurn(old[position], turn)) {
      insert.push(frozenCopy(turn, "a turn"));
      continue;
    }
    closeAt(position);
    at = position + 1;
  }
  closeAt(old.length);
  return splices;
}

function sameTurn(a: SessionTurn | undefined, b: SessionTurn | undefined): boolean {
  return a?.turnId === b?.turnId && sameJson(a, b);
}

function otherTurns(): SessionError {
  return new SessionError(
    "CONFLICT",
    "The diff was computed from other turns than it is applied to; apply it to the state it was computed from.",
  );
}
