import { sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { type SessionTurn, frozenCopy } from "./state.ts";

/** One range of turns that others replace. */
export interface TurnSplice {
  /** How many turns stand before it, in the list that the splice was computed from. */
  readonly at: number;
  /** The id of the turn right before it; null at the beginning. */
  readonly after: string | null;
  /** How many turns go. */
  readonly remove: number;
  /** The turns that come instead. */
  readonly insert: readonly SessionTurn[];
}

/** What turns one list of turns into another. */
export interface TurnsDiff {
  /** How many turns the list has that it was computed from. */
  readonly from: number;
  /** In the order of their positions, without overlap. */
  readonly splices: readonly TurnSplice[];
}

/** What turns `old` into `next`; null when they are equal. A turn that stands in both, in the same order, is not in it. */
export function diffTurns(old: readonly SessionTurn[], next: readonly SessionTurn[]): TurnsDiff | null {
  let start = 0;
  while (start < Math.min(old.length, next.length) && sameTurn(old[start], next[start])) start++;
  const splices = spliceFrom(start, old, next);
  return splices.length === 0 ? null : Object.freeze({ from: old.length, splices: Object.freeze(splices) });
}

/**
 * The turns that a diff makes of those it was computed from.
 *
 * @throws {SessionError} `CONFLICT` when these are others.
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

/** The splices after an equal beginning. */
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
