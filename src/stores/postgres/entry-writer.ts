import type { EncodedPlan } from "../rows/encode-plan.ts";
import type { CommitConditions, StoredRow } from "../rows/row-port.ts";
import { runsColumns, sameRuns } from "../rows/runs-columns.ts";
import { toJsonb } from "./jsonb-text.ts";
import { DATABASE_NOW_MS, type PostgresHandle, type Transaction } from "./postgres-handle.ts";
import { notifyIfWatched } from "./subscriptions.ts";
import type { LoadedSession } from "./session-row.ts";

const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

/** What must hold for rows to be written, and what time it is for leases; null for the clock of the database. */
export interface WriteConditions extends CommitConditions {
  readonly nowMs: number | null;
}

/** Writes entries together with the head that they lead to. */
export class EntryWriter {
  readonly #handle: PostgresHandle;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
  }

  /** Whether a plan fits into the one statement that `append` is. */
  fits({ rows }: EncodedPlan): boolean {
    return batchesOf(rows).length === 1;
  }

  /**
   * Writes rows and head in one statement, or nothing when the session has moved on or a condition does not hold. Of rows
   * that do not fit into it, the first batch; the others are for `insert`.
   */
  async append(
    writer: Pick<Transaction, "change">,
    session: LoadedSession,
    { rows, place }: EncodedPlan,
    { leaseToken, nowMs, idsUnseen }: WriteConditions,
  ): Promise<{ readonly written: boolean; readonly others: readonly StoredRow[] }> {
    const { head } = place;
    const batch = batchesOf(rows)[0] ?? [];
    const listed = sameRuns(session.head, head) ? null : runsColumns(head);
    const count = await writer.change(appendStatement(this.#handle, listed !== null), [
      ...[session.key, session.head.version, head.updatedAt, head.modifiedAt, head.version, recordsOf(batch)],
      ...[leaseToken, nowMs, idsUnseen],
      ...(listed === null ? [] : [listed.runs, listed.due]),
    ]);
    return { written: count > 0, others: rows.slice(batch.length) };
  }

  /** Makes a session ready for `append`, and keeps what listings filter by. The session must be locked. */
  async mark(transaction: Transaction, key: number, status: string): Promise<void> {
    const { schema } = this.#handle;
    await transaction.change(
      `WITH marked AS (UPDATE ${schema}.heads SET marked = true WHERE session_key = $1)
       UPDATE ${schema}.sessions SET unsettled = true, unsearched = true, status = $2 WHERE key = $1`,
      [key, status],
    );
  }

  /** Writes rows a batch at a time. */
  async insert(transaction: Transaction, key: number, rows: readonly StoredRow[]): Promise<void> {
    for (const batch of batchesOf(rows)) {
      await transaction.change(
        `INSERT INTO ${this.#handle.schema}.entries (session_key, seq, id, state, body)
         SELECT $1, seq, id, state, body
         FROM json_to_recordset($2::text::json) AS new (seq bigint, id text, state text, body jsonb)`,
        [key, recordsOf(batch)],
      );
    }
  }
}

/**
 * One statement, so that an append is one round trip and all of it or nothing. The update of the head waits for other
 * writers and then looks at what they left; the conditions are on that row, so that none of them can be outdated. A
 * deleted session is not marked. Who changes the session's other row as well, as open runs are `listed` there, locks that
 * one first, as everyone does.
 */
function appendStatement({ schema, channel }: PostgresHandle, listed: boolean): string {
  const locked = `locked AS (SELECT key FROM ${schema}.sessions WHERE key = $1 FOR NO KEY UPDATE), `;
  const runs = `, listed AS (
      UPDATE ${schema}.sessions SET runs = $10, runs_due = $11 FROM grown WHERE key = session_key
    )`;
  return `WITH ${listed ? locked : ""}grown AS (
      UPDATE ${schema}.heads
      SET version = $5, updated_at = $3, modified_at = $4
      ${listed ? "FROM locked" : ""}
      WHERE session_key = ${listed ? "key" : "$1"} AND version = $2 AND marked
        AND ($7::bigint IS NULL OR lease_token = $7 AND lease_until_ms > coalesce($8::bigint, ${DATABASE_NOW_MS}))
        AND NOT ($9::boolean AND EXISTS (
          SELECT 1 FROM json_to_recordset($6::text::json) AS new (id text)
          CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.entries WHERE session_key = $1 AND entries.id = new.id LIMIT 1) AS found
        ))
      RETURNING session_key, ${notifyIfWatched(channel)}
    )${listed ? runs : ""}
    INSERT INTO ${schema}.entries (session_key, seq, id, state, body)
    SELECT session_key, new.* FROM grown
    CROSS JOIN json_to_recordset($6::text::json) AS new (seq bigint, id text, state text, body jsonb)`;
}

function recordsOf(rows: readonly StoredRow[]): string {
  const records = rows.map(
    ({ seq, id, state, body }) =>
      `{"seq":${seq},"id":${JSON.stringify(id)},"state":${JSON.stringify(state)},"body":${toJsonb(body)}}`,
  );
  return `[${records.join(",")}]`;
}

function batchesOf(rows: readonly StoredRow[]): StoredRow[][] {
  const batches: StoredRow[][] = [];
  let batch: StoredRow[] = [];
  let characters = 0;
  for (const row of rows) {
    if (batch.length === BATCH_ROWS || (batch.length > 0 && characters + row.body.length > BATCH_CHARACTERS)) {
      batches.push(batch);
      batch = [];
      characters = 0;
    }
    batch.push(row);
    characters += row.body.length;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
