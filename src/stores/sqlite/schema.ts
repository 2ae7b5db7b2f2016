import { SessionError } from "../../session/errors.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** How many of the latest entries of a log may be missing in `entry_ids`, where they are written a block at a time. */
export const BLOCK_ENTRIES = 64;

/** The rows of a part of a log, of its key, its start and its end. */
export const IN_SEGMENT = "session_key = ? AND seq >= ? AND seq < ?";

/** The head's `updatedAt`, as SQL of a row's state. */
export const UPDATED_AT = "state ->> '$.at'";

/** The head's `modifiedAt`, as SQL of a row's state. */
export const MODIFIED_AT = "coalesce(state ->> '$.modified', state ->> '$.at')";

/** Marks the file as ours, so that no other program's database is written to. */
const APPLICATION_ID = 0x736b656e;

/**
 * What brings a database from each version of the schema to the next. Released ones are never changed.
 *
 * - `entries` is the log of all sessions, stored in the order of the appends: were it in the order of the sessions, a
 *   page would be split for every few entries of any session but the newest. An append is one row of it and nothing
 *   else. `state` is the path to the entry and the head after it, see entry-state.ts.
 * - `entry_ids` finds entries by id, all but those of the latest, unfinished block.
 * - `sessions` has one row a session. `version`, `updated_at` and `modified_at` are current unless the session is in
 *   `unsettled`; the rest always is. `runs` and `runs_due` are what listings find open runs by, see runs-columns.ts; the
 *   indexes on them hold no other sessions. A fork takes its first `origin_version` entries from `origin_key`. A purged
 *   session that forks build on keeps its row without an id. `indexed` is how many entries the search index has seen,
 *   or -1 before it has seen the session itself.
 * - `marks` are notes of what was erased, and of erasures under way.
 * - `unsettled` are the sessions that were appended to since their row was written. Only a live session is in it, and
 *   only to one that is in it can an entry be added.
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
  // From here on `state` holds settings by position. What was written before is read as it is. Of a session of before, the
  // state that holds the facts of its head says which runs have started; those that a fork took over are its source's.
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
  // From here on logs of format 3 may be in it, which an earlier program must refuse.
  "SELECT 1",
];

/**
 * Sets the connection up and brings the database to the schema of this version.
 *
 * @throws {SessionError} `UNSUPPORTED_VERSION` for a later schema and `STORE_FAILED` for another program's database,
 * both left as they are.
 */
export function prepareDatabase(handle: SqliteHandle, durability: "flush" | "fsync"): void {
  handle.exec("PRAGMA busy_timeout = 5000");
  const version = checkedVersion(handle);
  const { journal_mode: mode } = handle.row("SELECT journal_mode FROM pragma_journal_mode") as { journal_mode: string };
  if (mode !== "wal") handle.exec("PRAGMA journal_mode = WAL");
  if (version < MIGRATIONS.length) handle.transaction(() => migrate(handle));
  handle.exec(`PRAGMA synchronous = ${durability === "fsync" ? "FULL" : "NORMAL"}`);
  handle.exec("PRAGMA foreign_keys = ON");
  // Bringing the log home waits for the disk; every 16 MB instead of every 4, appends wait for it a quarter as often.
  handle.exec("PRAGMA wal_autocheckpoint = 4000");
}

function migrate(handle: SqliteHandle): void {
  // Another process may have been here since the version was first read.
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
      `The database ${handle.address} belongs to another program; choose a file of its own for skein.`,
    );
  }
  return version;
}
