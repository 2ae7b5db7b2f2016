import type { SessionHead } from "../../session/fold.ts";
import type { NewRow } from "../rows/encode-plan.ts";
import { runsColumns, sameRuns } from "../rows/runs-columns.ts";
import { BLOCK_ENTRIES } from "./schema.ts";
import { boundsOf, IN_SEGMENT } from "./segments.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

/** Writes what goes with new entries: the finished blocks of ids, and what a session's own row must always show. */
export class EntryWriter {
  readonly #insert: SqliteStatement;
  readonly #indexIds: SqliteStatement;
  readonly #setFacts: SqliteStatement;
  readonly #setRuns: SqliteStatement;

  constructor(handle: SqliteHandle) {
    this.#insert = handle.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?)");
    this.#indexIds = handle.prepare(
      `INSERT INTO entry_ids SELECT session_key, id, seq FROM entries WHERE ${IN_SEGMENT}`,
    );
    this.#setFacts = handle.prepare("UPDATE sessions SET status = ?, name = ? WHERE key = ?");
    this.#setRuns = handle.prepare("UPDATE sessions SET runs = ?, runs_due = ? WHERE key = ?");
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
    if (!sameRuns(before, after)) {
      const { runs, due } = runsColumns(after);
      this.#setRuns.run([runs, due, key]);
    }
  }
}

/** Whether writing from one head to another is more than its rows. */
export function needsFinish(before: SessionHead, after: SessionHead): boolean {
  return (
    wholeBlocks(before.version) !== wholeBlocks(after.version) ||
    before.status !== after.status ||
    before.name !== after.name ||
    !sameRuns(before, after)
  );
}

function wholeBlocks(version: number): number {
  return version - (version % BLOCK_ENTRIES);
}
