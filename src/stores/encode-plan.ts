import type { AppendPlan, StoredEntry } from "../session/append-plan.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead } from "../session/fold.ts";
import { encodeState, freezeHead, type HeadPlace, sameFacts } from "./entry-state.ts";

/** A row to be written, after the session's key. */
export interface NewRow {
  readonly seq: number;
  readonly id: string;
  readonly state: string;
  readonly body: string;
}

/** What a plan writes, as rows, and where the head is then. */
export interface EncodedPlan {
  readonly rows: readonly NewRow[];
  readonly place: HeadPlace;
}

/** The rows of a plan, each with the head after it, so that the log can be forked anywhere. */
export function encodePlan(start: HeadPlace, plan: AppendPlan, found: ReadonlyMap<string, StoredEntry>): EncodedPlan {
  const { added } = plan;
  const own = added.length === 1 ? found : new Map(found);
  const rows: NewRow[] = [];
  let place = start;
  for (let index = 0; index < added.length; index++) {
    const stored = added[index] as StoredEntry;
    const { entry } = stored;
    const head = index === added.length - 1 ? plan.head : stepOver(place.head, stored, plan.head.updatedAt, own);
    const next: HeadPlace = {
      head,
      leafSeq: leafAfter(place, stored, head, own),
      factsSeq: sameFacts(place.head, head) ? place.factsSeq : entry.seq,
    };
    rows.push({ seq: entry.seq, id: entry.id, state: encodeState(place, stored, next), body: JSON.stringify(entry) });
    place = next;
    if (own !== found) (own as Map<string, StoredEntry>).set(entry.id, stored);
  }
  freezeHead(place.head, start.head);
  return { rows, place };
}

type Found = ReadonlyMap<string, StoredEntry>;

function stepOver(head: SessionHead, { entry, path }: StoredEntry, now: string, found: Found): SessionHead {
  let target: PathSummary = EMPTY_PATH;
  if (entry.type === "leaf" && entry.targetId !== null) target = found.get(entry.targetId)?.path ?? EMPTY_PATH;
  return stepHead(head, entry, path ?? target, now);
}

function leafAfter(before: HeadPlace, { entry }: StoredEntry, head: SessionHead, found: Found): number | null {
  if (head.leafId === entry.id) return entry.seq;
  if (entry.type !== "leaf") return before.leafSeq;
  return entry.targetId === null ? null : (found.get(entry.targetId)?.entry.seq ?? before.leafSeq);
}
