import { sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { type SessionTurn, frozenCopy } from "./state.ts";

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
export function diffTurns(old: readonly SessionTurn[], next: readonly SessionTurn[]): TurnsDiff | null {
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
export function applyTurnsDiff(turns: readonly SessionTurn[], diff: TurnsDiff): readonly SessionTurn[] {
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
