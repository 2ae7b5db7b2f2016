import type { StoredRow } from "../rows/row-port.ts";
import { toJsonb } from "./jsonb-text.ts";
import { DATABASE_NOW_MS, type PostgresHandle } from "./postgres-handle.ts";
import { notifyIfWatched } from "./subscriptions.ts";

const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

/**
 * The SQL of an append: one statement, so that it is one round trip and atomic. The UPDATE of the row in `heads` waits for
 * concurrent writers and then checks its conditions on the row that they left, so no condition can be outdated. The row of
 * a deleted session is not `marked`, so nothing is appended to it. With `updatesRuns`, the statement also updates the row in
 * `sessions`. It then locks that row first, in the same order as all other code, to prevent deadlocks.
 */
export function appendStatement({ schema, channel }: PostgresHandle, updatesRuns: boolean): string {
  const locked = `locked AS (SELECT key FROM ${schema}.sessions WHERE key = $1 FOR NO KEY UPDATE), `;
  const runs = `, updated_runs AS (
      UPDATE ${schema}.sessions SET runs = $10, runs_due = $11 FROM grown WHERE key = session_key
    )`;
  return `WITH ${updatesRuns ? locked : ""}grown AS (
      UPDATE ${schema}.heads
      SET version = $5, updated_at = $3, modified_at = $4
      ${updatesRuns ? "FROM locked" : ""}
      WHERE session_key = ${updatesRuns ? "key" : "$1"} AND version = $2 AND marked
        AND ($7::bigint IS NULL OR lease_token = $7 AND lease_until_ms > coalesce($8::bigint, ${DATABASE_NOW_MS}))
        AND NOT ($9::boolean AND EXISTS (
          SELECT 1 FROM json_to_recordset($6::text::json) AS new (id text)
          CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.entries WHERE session_key = $1 AND entries.id = new.id LIMIT 1) AS found
        ))
      RETURNING session_key, ${notifyIfWatched(channel)}
    )${updatesRuns ? runs : ""}
    INSERT INTO ${schema}.entries (session_key, seq, id, state, body)
    SELECT session_key, seq, id, state, body::jsonb FROM grown
    CROSS JOIN json_to_recordset($6::text::json) AS new (seq bigint, id text, state text, body text)`;
}

/** Rows as the JSON value that is bound to a statement. */
export function recordsOf(rows: readonly StoredRow[]): string {
  return JSON.stringify(rows.map(({ seq, id, state, body }) => ({ seq, id, state, body: toJsonb(body) })));
}

/** Splits rows into batches small enough for one statement. */
export function batchesOf(rows: readonly StoredRow[]): StoredRow[][] {
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
