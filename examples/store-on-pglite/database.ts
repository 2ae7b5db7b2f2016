import type { PGliteInterface, Transaction } from "@electric-sql/pglite";
import { SessionError } from "skein";

/** A database, or one transaction of it. */
export type Queries = Pick<PGliteInterface | Transaction, "query">;

/**
 * - `sessions` has a row for each session: its header, the length of its log, and the columns of listings. A fork's log
 *   begins with the parts in `origin`, the last of which ends at `origin_version` in the rows of `origin_key`. A purged
 *   session whose rows a fork shares keeps its row, without an id.
 * - `entries` is the log of all sessions. The row engine stores its data of an entry in `state`.
 */
const SCHEMA = `
  CREATE SCHEMA IF NOT EXISTS skein;
  CREATE TABLE IF NOT EXISTS skein.sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" UNIQUE,
    header text NOT NULL,
    version bigint NOT NULL,
    origin text NOT NULL,
    origin_key bigint,
    origin_version bigint NOT NULL,
    user_id text,
    cwd text,
    parents text[] NOT NULL,
    status text NOT NULL,
    updated_at text NOT NULL,
    modified_at text NOT NULL,
    deleted_at text,
    runs integer,
    runs_due text
  );
  CREATE INDEX IF NOT EXISTS sessions_by_time ON skein.sessions (modified_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX IF NOT EXISTS sessions_by_user ON skein.sessions (user_id, modified_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX IF NOT EXISTS sessions_by_parent ON skein.sessions USING gin (parents);
  CREATE INDEX IF NOT EXISTS sessions_by_origin ON skein.sessions (origin_key) WHERE origin_key IS NOT NULL;
  CREATE INDEX IF NOT EXISTS sessions_with_runs ON skein.sessions (runs) WHERE runs IS NOT NULL;
  CREATE TABLE IF NOT EXISTS skein.entries (
    session_key bigint NOT NULL,
    seq bigint NOT NULL,
    id text NOT NULL,
    state text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (session_key, seq),
    UNIQUE (session_key, id)
  );
  CREATE TABLE IF NOT EXISTS skein.checkpoints (
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    id text PRIMARY KEY,
    session_key bigint NOT NULL REFERENCES skein.sessions ON DELETE CASCADE,
    created_at text NOT NULL,
    body text NOT NULL
  );
  CREATE TABLE IF NOT EXISTS skein.leases (
    session_key bigint PRIMARY KEY REFERENCES skein.sessions ON DELETE CASCADE,
    token bigint NOT NULL,
    run_id text NOT NULL,
    expires_ms bigint NOT NULL
  );
  CREATE SEQUENCE IF NOT EXISTS skein.lease_tokens;`;

/** Creates the missing tables of a store. */
export async function prepareDatabase(database: PGliteInterface): Promise<void> {
  try {
    await database.exec(SCHEMA);
  } catch (cause) {
    throw failure(cause);
  }
}

/** The result of a statement. */
export async function select<Row>(queries: Queries, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
  try {
    const { rows } = await queries.query<Row>(sql, [...values]);
    return rows;
  } catch (cause) {
    throw failure(cause);
  }
}

/** Turns every error of the database into a `SessionError`, so that callers can branch on its code. */
function failure(cause: unknown): SessionError {
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new SessionError("STORE_FAILED", `The PGlite database failed: ${problem}.`, { cause });
}
