import type { SessionHead } from "../../session/fold.ts";
import type { EncodedPlan, NewRow } from "../sqlite/entry-writer.ts";
import { toJsonb } from "./jsonb-text.ts";
import { DATABASE_NOW_MS, type PostgresHandle, type Transaction } from "./postgres-handle.ts";
import type { SqlValue } from "./postgres-connection.ts";
import { encodeHead, encodeSettings, type LoadedSession } from "./session-row.ts";

const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

/** What must hold for rows to be written, beside the version of the head that they were planned on. */
export interface WriteConditions {
  readonly leaseToken: number | null;
  /** Null for the clock of the database. */
  readonly nowMs: number | null;
  /** None of the ids may be taken: nobody has looked yet. */
  readonly idsAreNew: boolean;
}

/** Writes entries together with the head that they lead to. */
export class EntryWriter {
  readonly #handle: PostgresHandle;
  readonly #appendOne: string;
  readonly #appendSome: string;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
    const { schema, channel } = handle;
    const one = "(SELECT $13::bigint AS seq, $14::text AS id, $15::text AS state, $16::text::jsonb AS body)";
    const some = "json_to_recordset($13::text::json)";
    const columns = "(seq bigint, id text, state text, body jsonb)";
    this.#appendOne = appendStatement(schema, channel, `${one} AS new`, "(SELECT $14::text AS id)");
    this.#appendSome = appendStatement(
      schema,
      channel,
      `${some} AS new ${columns}`,
      `(SELECT id FROM ${some} AS new (id text))`,
    );
  }

  /** Whether a plan fits into the one statement that `append` is. */
  fits({ rows }: EncodedPlan): boolean {
    return rows.length <= BATCH_ROWS && charactersOf(rows) <= BATCH_CHARACTERS;
  }

  /** Writes rows and head in one statement, or nothing when the session has moved on or a condition does not hold. */
  async append(
    write: (sql: string, values: readonly SqlValue[]) => Promise<readonly unknown[]>,
    session: LoadedSession,
    { rows, place }: EncodedPlan,
    conditions: WriteConditions,
  ): Promise<boolean> {
    const { leaseToken, nowMs, idsAreNew } = conditions;
    const { head } = place;
    const changed = head.path.settings !== session.head.path.settings;
    const values = [
      session.key,
      session.head.version,
      head.version,
      encodeHead(place),
      // Settings may be long, and stay where they are unless they changed.
      changed,
      changed ? encodeSettings(head.path.settings) : null,
      ...timesOf(head),
      leaseToken,
      nowMs,
      idsAreNew,
    ];
    const [first, ...others] = rows as [NewRow, ...NewRow[]];
    if (others.length > 0) return (await write(this.#appendSome, [...values, recordsOf(rows)])).length > 0;
    const { seq, id, state, body } = first;
    return (await write(this.#appendOne, [...values, seq, id, state, toJsonb(body)])).length > 0;
  }

  /** Writes rows a batch at a time. */
  async insert(transaction: Transaction, key: number, rows: readonly NewRow[]): Promise<void> {
    for (const batch of batchesOf(rows)) {
      await transaction.write(
        `INSERT INTO ${this.#handle.schema}.entries (session_key, seq, id, state, body)
         SELECT $1, seq, id, state, body
         FROM json_to_recordset($2::text::json) AS new (seq bigint, id text, state text, body jsonb)`,
        [key, recordsOf(batch)],
      );
    }
  }
}

/** The first batch of a plan's rows, and the others. */
export function splitPlan(encoded: EncodedPlan): { first: EncodedPlan; others: readonly NewRow[] } {
  const [first = []] = batchesOf(encoded.rows);
  return { first: { ...encoded, rows: first }, others: encoded.rows.slice(first.length) };
}

/**
 * One statement, so that an append is one round trip and all of it or nothing. The update of the session's row waits for
 * other writers and then looks at what they left; the conditions are on that row, so that none of them can be outdated.
 */
function appendStatement(schema: string, channel: string, rows: string, ids: string): string {
  return `WITH grown AS (
      UPDATE ${schema}.sessions SET version = $3, head = $4,
        settings = CASE WHEN $5::boolean THEN $6::text ELSE settings END,
        updated_at = $7, modified_at = $8, status = $9, unsettled = true, unsearched = true
      WHERE key = $1 AND version = $2 AND deleted_at IS NULL
        AND ($10::bigint IS NULL
          OR (lease_token = $10 AND lease_until_ms > coalesce($11::bigint, ${DATABASE_NOW_MS})))
        AND NOT ($12::boolean AND EXISTS (
          SELECT 1 FROM ${ids} AS new CROSS JOIN LATERAL (
            SELECT 1 FROM ${schema}.entries WHERE session_key = $1 AND entries.id = new.id LIMIT 1
          ) AS taken
        ))
      RETURNING key, CASE WHEN watched_until_ms > ${DATABASE_NOW_MS} THEN pg_notify('${channel}', id) END
    )
    INSERT INTO ${schema}.entries (session_key, seq, id, state, body)
    SELECT grown.key, new.seq, new.id, new.state, new.body FROM grown CROSS JOIN ${rows}
    RETURNING seq`;
}

function timesOf(head: SessionHead): [updatedAt: string, modifiedAt: string, status: string] {
  return [head.updatedAt, head.modifiedAt, head.status];
}

function recordsOf(rows: readonly NewRow[]): string {
  const records = rows.map(
    ({ seq, id, state, body }) =>
      `{"seq":${seq},"id":${JSON.stringify(id)},"state":${JSON.stringify(state)},"body":${toJsonb(body)}}`,
  );
  return `[${records.join(",")}]`;
}

function batchesOf(rows: readonly NewRow[]): NewRow[][] {
  const batches: NewRow[][] = [];
  let batch: NewRow[] = [];
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

function charactersOf(rows: readonly NewRow[]): number {
  return rows.reduce((sum, { body }) => sum + body.length, 0);
}
