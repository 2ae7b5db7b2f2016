import type { AppendPlan, StoredEntry } from "../../session/append-plan.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead } from "../../session/fold.ts";
import { encodeState, freezeHead, type HeadPlace, sameFacts } from "./entry-state.ts";
import { BLOCK_ENTRIES } from "./schema.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

/** A row to be written: position, id, times, state and entry, after the session's key. */
export type NewRow = readonly [
  seq: number,
  id: string,
  updatedAt: string,
  modifiedAt: string | null,
  state: string,
  body: string,
];

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
    this.#insert = handle.prepare("INSERT INTO entries VALUES (?1 << 32 | ?2, ?3, ?4, ?5, ?6, ?7)");
    this.#indexIds = handle.prepare(
      `INSERT INTO entry_ids SELECT ?1, id, position & 4294967295 FROM entries
       WHERE position BETWEEN (?1 << 32 | ?2) AND (?1 << 32 | ?3)`,
    );
    this.#setFacts = handle.prepare("UPDATE sessions SET status = ?2, name = ?3 WHERE key = ?1");
  }

  /** Writes the rows of a session that nobody else can see yet. */
  insertAll(key: number, rows: readonly NewRow[]): void {
    for (const row of rows) this.#insert.run([key, ...row]);
  }

  /** Must be in one transaction with the rows. */
  finish(key: number, before: SessionHead, after: SessionHead): void {
    const [from, end] = [wholeBlocks(before.version), wholeBlocks(after.version)];
    if (end > from) this.#indexIds.run([key, from, end - 1]);
    if (before.status !== after.status || before.name !== after.name) {
      this.#setFacts.run([key, after.status, after.name]);
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
  const own = new Map<string, StoredEntry>();
  const targetOf = (id: string): StoredEntry | undefined => own.get(id) ?? found.get(id);
  const rows: NewRow[] = [];
  let place = start;
  for (const [index, stored] of plan.added.entries()) {
    const last = index === plan.added.length - 1;
    const head = last ? plan.head : stepOver(place.head, stored, plan.head.updatedAt, targetOf);
    const leafSeq = leafAfter(place, stored, head, targetOf);
    const state = encodeState(place, stored, { head, leafSeq });
    const { entry } = stored;
    const { updatedAt } = head;
    const modifiedAt = head.modifiedAt === updatedAt ? null : head.modifiedAt;
    rows.push([entry.seq, entry.id, updatedAt, modifiedAt, state, JSON.stringify(entry)]);
    place = { head, leafSeq, factsSeq: sameFacts(place.head, head) ? place.factsSeq : entry.seq };
    if (!last) own.set(entry.id, stored);
  }
  freezeHead(place.head);
  return { rows, place };
}

type Lookup = (id: string) => StoredEntry | undefined;

function stepOver(head: SessionHead, { entry, path }: StoredEntry, now: string, targetOf: Lookup): SessionHead {
  let target: PathSummary = EMPTY_PATH;
  if (entry.type === "leaf" && entry.targetId !== null) target = targetOf(entry.targetId)?.path ?? EMPTY_PATH;
  return stepHead(head, entry, path ?? target, now);
}

function leafAfter(before: HeadPlace, { entry }: StoredEntry, head: SessionHead, targetOf: Lookup): number | null {
  if (head.leafId === entry.id) return entry.seq;
  if (entry.type !== "leaf") return before.leafSeq;
  return entry.targetId === null ? null : (targetOf(entry.targetId)?.entry.seq ?? before.leafSeq);
}

function wholeBlocks(version: number): number {
  return version - (version % BLOCK_ENTRIES);
}
