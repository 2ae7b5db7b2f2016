import type { AppendPlan, StoredEntry } from "../../session/append-plan.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead } from "../../session/fold.ts";
import { encodeState, freezeHead, type HeadPlace, sameFacts } from "./entry-state.ts";
import { BLOCK_ENTRIES } from "./schema.ts";
import { boundsOf, IN_SEGMENT } from "./segments.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

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

/** Writes what goes with new entries: the finished blocks of ids, and what a session's own row must always show. */
export class EntryWriter {
  readonly #insert: SqliteStatement;
  readonly #indexIds: SqliteStatement;
  readonly #setFacts: SqliteStatement;

  constructor(handle: SqliteHandle) {
    this.#insert = handle.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?)");
    this.#indexIds = handle.prepare(
      `INSERT INTO entry_ids SELECT session_key, id, seq FROM entries WHERE ${IN_SEGMENT}`,
    );
    this.#setFacts = handle.prepare("UPDATE sessions SET status = ?, name = ? WHERE key = ?");
  }

  /** Writes the rows of a session that nobody else can see yet. */
  insertAll(key: number, rows: readonly NewRow[]): void {
    for (const { seq, id, state, body } of rows) this.#insert.run([key, seq, id, state, body]);
  }

  /** Must be in one transaction with the rows. */
  finish(key: number, before: SessionHead, after: SessionHead): void {
    const [start, end] = [wholeBlocks(before.version), wholeBlocks(after.version)];
    if (end > start) this.#indexIds.run(boundsOf({ key, start, end }));
    if (before.status !== after.status || before.name !== after.name) {
      this.#setFacts.run([after.status, after.name, key]);
    }
  }
}

/** Whether writing from one head to another is more than its rows. */
export function needsFinish(before: SessionHead, after: SessionHead): boolean {
  return (
    wholeBlocks(before.version) !== wholeBlocks(after.version) ||
    before.status !== after.status ||
    before.name !== after.name
  );
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

function wholeBlocks(version: number): number {
  return version - (version % BLOCK_ENTRIES);
}
