import type { StoredRow } from "../rows/row-port.ts";
import { toJsonb } from "./jsonb-text.ts";
import { DATABASE_NOW_MS, type PostgresHandle } from "./postgres-handle.ts";
import { notifyIfWatched } from "./subscriptions.ts";

const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

/**
 * One statement, so that an append is one round trip and all of it or nothing. The update of the head waits for other
 * writers and then looks at what they left; the conditions are on that row, so that none of them can be outdated. A
 * deleted session is not marked. Who changes the session's other row as well, as open runs are `listed` there, locks that
 * one first, as everyone does.
 */
export function appendStatement({ schema, channel }: PostgresHandle, listed: boolean): string {
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
    SELECT session_key, seq, id, state, body::jsonb FROM grown
    CROSS JOIN json_to_recordset($6::text::json) AS new (seq bigint, id text, state text, body text)`;
}

/** Rows as they are bound to a statement. */
export function recordsOf(rows: readonly StoredRow[]): string {
  return JSON.stringify(rows.map(({ seq, id, state, body }) => ({ seq, id, state, body: toJsonb(body) })));
}

/** Rows in parts that one statement can take. */
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
