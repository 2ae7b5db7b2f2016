import { SessionError } from "../../session/errors.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** Entries are added to `entry_ids` in blocks of this size, so up to this many of the latest are not in it yet. */
export const BLOCK_ENTRIES = 64;

/** SQL condition for the rows of a segment. Bind its key, start and end. */
export const IN_SEGMENT = "session_key = ? AND seq >= ? AND seq < ?";

/** SQL for the head's `updatedAt`, read from the state of a row. */
export const UPDATED_AT = "state ->> '$.at'";

/** SQL for the head's `modifiedAt`, read from the state of a row. */
export const MODIFIED_AT = "coalesce(state ->> '$.modified', state ->> '$.at')";

/** SQLite's application id of our files, so that Skein never writes to the database of another program. */
const APPLICATION_ID = 0x736b656e;

/**
 * The migrations from each version of the schema to the next. A released migration is never changed.
 *
 * - `entries` holds the logs of all sessions in the order of the appends. In the order of the sessions, almost every append
 *   would split a page. An append inserts one row here and writes nothing else. `state` encodes the path to the entry and
 *   the head after it, see row-encoding.ts.
 * - `entry_ids` finds entries by id, except those of the latest, incomplete block.
 * - `sessions` has one row per session. `version`, `updated_at` and `modified_at` are outdated while the session is in
 *   `unsettled`; the other columns are always current. `runs` and `runs_due` serve listings by open runs, see
 *   runs-columns.ts; their indexes are partial and contain only sessions with open runs. A fork inherits its first
 *   `origin_version` entries from `origin_key`. A purged session with forks keeps its row, with `id` set to NULL.
 *   `indexed` is the number of entries that the search index contains, or -1 if it does not contain the session yet.
 * - `marks` records what was erased, and which erasures are running.
 * - `unsettled` lists the sessions with appends since their row in `sessions` was updated, live ones only. The INSERT of an
 *   append selects from it, so it adds nothing to a session that is not in it; the append then locks the session and adds it.
 * - `spending` and `spending_hours` are the ledger of budgets, see session/ledger.ts.
 * - `blobs` has a row for each image and file, by the root session of its forks and its hash; `blob_chunks` has their bytes.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE sessions (
     key INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT UNIQUE,
     user_id TEXT,
     cwd TEXT,
     status TEXT NOT NULL,
     name TEXT,
     version INTEGER NOT NULL,
     updated_at TEXT NOT NULL,
     modified_at TEXT NOT NULL,
     deleted_at TEXT,
     origin_key INTEGER,
     origin_version INTEGER NOT NULL,
     indexed INTEGER NOT NULL DEFAULT -1,
     header TEXT NOT NULL
   );
   CREATE INDEX sessions_by_time ON sessions (modified_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_by_user ON sessions (user_id, modified_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_by_cwd ON sessions (cwd, modified_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_idle ON sessions (updated_at) WHERE deleted_at IS NULL AND status IN ('active', 'suspended');
   CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;
   CREATE INDEX sessions_by_origin ON sessions (origin_key) WHERE origin_key IS NOT NULL;
   CREATE INDEX sessions_unindexed ON sessions (indexed) WHERE indexed < version;
   CREATE TABLE entries (
     session_key INTEGER NOT NULL,
     seq INTEGER NOT NULL,
     id TEXT NOT NULL,
     state TEXT NOT NULL,
     body TEXT NOT NULL,
     UNIQUE (session_key, seq)
   );
   CREATE TABLE entry_ids (
     session_key INTEGER NOT NULL,
     id TEXT NOT NULL,
     seq INTEGER NOT NULL,
     PRIMARY KEY (session_key, id)
   ) WITHOUT ROWID;
   CREATE TABLE unsettled (session_key INTEGER PRIMARY KEY);
   CREATE TABLE session_parents (
     parent_id TEXT NOT NULL,
     session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
     forked INTEGER NOT NULL,
     PRIMARY KEY (parent_id, session_key)
   ) WITHOUT ROWID;
   CREATE INDEX session_parents_by_session ON session_parents (session_key);
   CREATE TABLE checkpoints (
     sequence INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
     created_at TEXT NOT NULL,
     body TEXT NOT NULL
   );
   CREATE INDEX checkpoints_by_session ON checkpoints (session_key, created_at);
   CREATE TABLE leases (
     token INTEGER PRIMARY KEY AUTOINCREMENT,
     session_key INTEGER NOT NULL UNIQUE REFERENCES sessions (key) ON DELETE CASCADE,
     run_id TEXT NOT NULL,
     expires_ms INTEGER NOT NULL
   );`,
  "ALTER TABLE leases ADD COLUMN holder TEXT",
  // From this version on, `state` refers to settings by position; older rows stay as they are and are still read. For
  // existing sessions, the row that stores the facts of the head tells whether runs are open; a fork's inherited rows do not
  // count, as their runs belong to its source.
  `CREATE TABLE marks (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
   ALTER TABLE sessions ADD COLUMN runs INTEGER;
   ALTER TABLE sessions ADD COLUMN runs_due TEXT;
   UPDATE sessions SET runs = 2 WHERE id IS NOT NULL AND EXISTS (
     SELECT 1 FROM entries AS last JOIN entries AS facts ON facts.session_key = last.session_key
       AND facts.seq = iif(json_type(last.state, '$.facts') = 'object', last.seq, last.state ->> '$.facts')
     WHERE last.session_key = sessions.key
       AND last.seq = (SELECT max(seq) FROM entries WHERE session_key = sessions.key)
       AND json_array_length(facts.state, '$.facts.openRuns') > 0
   );
   CREATE INDEX sessions_requested ON sessions (modified_at, id) WHERE deleted_at IS NULL AND runs & 1;
   CREATE INDEX sessions_started ON sessions (modified_at, id) WHERE deleted_at IS NULL AND runs & 2;
   CREATE INDEX sessions_parked ON sessions (modified_at, id) WHERE deleted_at IS NULL AND runs & 4;
   CREATE INDEX sessions_requested_by_user ON sessions (user_id, modified_at, id) WHERE deleted_at IS NULL AND runs & 1;
   CREATE INDEX sessions_started_by_user ON sessions (user_id, modified_at, id) WHERE deleted_at IS NULL AND runs & 2;
   CREATE INDEX sessions_parked_by_user ON sessions (user_id, modified_at, id) WHERE deleted_at IS NULL AND runs & 4;
   CREATE INDEX sessions_due ON sessions (runs_due) WHERE deleted_at IS NULL AND runs_due IS NOT NULL;`,
  // From this version on, logs may have format 3, which earlier versions of Skein must refuse to open.
  "SELECT 1",
  `CREATE TABLE spending (user_id TEXT PRIMARY KEY, stamp TEXT NOT NULL, page TEXT NOT NULL) WITHOUT ROWID;
   CREATE TABLE spending_hours (
     user_id TEXT NOT NULL,
     hour INTEGER NOT NULL,
     total_tokens INTEGER NOT NULL,
     cost REAL NOT NULL,
     PRIMARY KEY (user_id, hour)
   ) WITHOUT ROWID;`,
  `CREATE TABLE blobs (
     scope TEXT NOT NULL,
     hash TEXT NOT NULL,
     size INTEGER NOT NULL,
     renewed_ms INTEGER NOT NULL,
     chunks TEXT NOT NULL UNIQUE,
     PRIMARY KEY (scope, hash)
   ) WITHOUT ROWID;
   CREATE TABLE blob_chunks (
     chunks TEXT NOT NULL,
     number INTEGER NOT NULL,
     written_ms INTEGER NOT NULL,
     data BLOB NOT NULL,
     UNIQUE (chunks, number)
   );`,
];

/**
 * Configures the connection and migrates the database to the current schema.
 *
 * @throws {SessionError} `UNSUPPORTED_VERSION` for a later schema, `STORE_FAILED` for the database of another program. The
 * database is then left unchanged.
 */
export function prepareDatabase(handle: SqliteHandle, durability: "flush" | "fsync"): void {
  handle.exec("PRAGMA busy_timeout = 5000");
  const version = checkedVersion(handle);
  const { journal_mode: mode } = handle.row("SELECT journal_mode FROM pragma_journal_mode") as { journal_mode: string };
  if (mode !== "wal") handle.exec("PRAGMA journal_mode = WAL");
  if (version < MIGRATIONS.length) handle.transaction(() => migrate(handle));
  handle.exec(`PRAGMA synchronous = ${durability === "fsync" ? "FULL" : "NORMAL"}`);
  handle.exec("PRAGMA foreign_keys = ON");
  // A checkpoint of the write-ahead log waits for the disk. Every 16 MB instead of every 4 MB, appends wait a quarter as often.
  handle.exec("PRAGMA wal_autocheckpoint = 4000");
}

function migrate(handle: SqliteHandle): void {
  // Read the version again inside the transaction: another process may have migrated in the meantime.
  for (const migration of MIGRATIONS.slice(checkedVersion(handle))) handle.exec(migration);
  handle.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  handle.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
}

function checkedVersion(handle: SqliteHandle): number {
  const { version, application, tables } = handle.row(
    `SELECT user_version AS version, application_id AS application, (SELECT count(*) FROM sqlite_schema) AS tables
     FROM pragma_user_version, pragma_application_id`,
  ) as { version: number; application: number; tables: number };
  if (version > MIGRATIONS.length) {
    throw new SessionError(
      "UNSUPPORTED_VERSION",
      `The database ${handle.address} has schema version ${version}; this version of skein knows ${MIGRATIONS.length}, so update skein to open it.`,
    );
  }
  if (tables > 0 && application !== APPLICATION_ID) {
    throw new SessionError(
      "STORE_FAILED",
      `The database ${handle.address} belongs to another program; choose a separate file for skein.`,
    );
  }
  return version;
}
