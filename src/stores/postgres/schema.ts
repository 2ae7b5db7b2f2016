import { SessionError } from "../../session/errors.ts";
import { hasState } from "./postgres-failure.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";

/** How many entries one row of the search index covers. */
export const SEARCH_BLOCK_ENTRIES = 64;

const PLAIN_TEXT = 'text COLLATE "C"';

type UnsampledColumns = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The unsampled columns of the schema before the ledger was added. */
const UNSAMPLED_BEFORE_LEDGER: UnsampledColumns = {
  sessions: { id: PLAIN_TEXT, user_id: PLAIN_TEXT, cwd: PLAIN_TEXT, segments: "text", header: "jsonb" },
  heads: { session_id: PLAIN_TEXT, lease_run: "text" },
  entries: { id: PLAIN_TEXT, state: "text", body: "json" },
  session_parents: { parent_id: PLAIN_TEXT },
  checkpoints: { id: PLAIN_TEXT, body: "text" },
  search_index: { trigrams: "integer[]" },
  marks: { key: PLAIN_TEXT, value: "text" },
};
const UNSAMPLED_IN_LEDGER: UnsampledColumns = {
  spending: { user_id: PLAIN_TEXT, stamp: "text", page: "text" },
  spending_hours: { user_id: PLAIN_TEXT },
};

const UNSAMPLED_IN_BLOBS: UnsampledColumns = {
  blobs: { scope: PLAIN_TEXT, hash: PLAIN_TEXT, chunks: PLAIN_TEXT },
  blob_chunks: { chunks: PLAIN_TEXT, data: "bytea" },
};

/** The columns with texts or names, with their types. PostgreSQL must keep no statistics of them, as those contain samples. */
export const UNSAMPLED_COLUMNS: UnsampledColumns = {
  ...UNSAMPLED_BEFORE_LEDGER,
  ...UNSAMPLED_IN_LEDGER,
  ...UNSAMPLED_IN_BLOBS,
};

/**
 * The migrations from each version of the schema to the next; `$` is replaced by the name of the schema. A released
 * migration is never changed.
 *
 * - `sessions` has one row per session, with the columns that rarely change and those that listings need. `listed_at` and
 *   `idle_at` are the sort keys: copies of `modified_at` and `updated_at` from the last refresh, outdated while `unsettled`
 *   is true. `runs` and `runs_due` serve listings by open runs, see runs-columns.ts; their indexes are partial and contain
 *   only sessions with open runs. A fork inherits its first `origin_version` entries from `origin_key`; `segments` lists all
 *   sessions that it inherits from. A purged session with forks keeps its row, with `id` set to NULL.
 * - `heads` has one row per session, with the columns that every append changes: the length of the log and the times. The
 *   UPDATE of this row serializes the appends. An append updates the row in `sessions` only if `status` or `runs` change. The
 *   lease and the expiry of watchers are here as well, so that an append sees their current values. The table has no index
 *   beside its key, as each would slow down every append. `marked` is true if the row in `sessions` is `unsettled` and
 *   `unsearched`; an append to a session that is not marked must mark it first.
 * - `entries` holds the logs of all sessions. Its key begins with the session's key, so the table can be partitioned by it.
 *   `state` encodes the path to the entry and the head after it, see row-encoding.ts. `body` is `json`, which keeps the order
 *   of keys: the prompt cache of a provider depends on it.
 * - `search_index` holds the trigrams of each block of entries; block -1 has those of the session's id, name and directory.
 *   The first `searched` entries are indexed; `unsearched` is true if there may be more.
 * - `marks` records what was erased, and which erasures are running.
 * - `spending` and `spending_hours` are the ledger of budgets, see session/ledger.ts. Every round of a run with a budget updates
 *   a row of `spending`, so that half of each of its pages is left free for new versions of rows.
 * - `blobs` has a row for each image and file, by the root session of its forks and its hash; `blob_chunks` has their bytes,
 *   which the database does not try to compress.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE SEQUENCE $.lease_tokens;
   CREATE TABLE $.sessions (
     key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" UNIQUE,
     user_id text COLLATE "C",
     cwd text COLLATE "C",
     status text COLLATE "C" NOT NULL,
     listed_at text COLLATE "C" NOT NULL,
     idle_at text COLLATE "C" NOT NULL,
     unsettled boolean NOT NULL DEFAULT false,
     deleted_at text COLLATE "C",
     origin_key bigint,
     origin_version bigint NOT NULL,
     segments text NOT NULL,
     searched bigint NOT NULL,
     unsearched boolean NOT NULL DEFAULT true,
     header jsonb NOT NULL
   );
   CREATE TABLE $.heads (
     session_key bigint PRIMARY KEY,
     session_id text COLLATE "C" NOT NULL,
     version bigint NOT NULL,
     updated_at text COLLATE "C" NOT NULL,
     modified_at text COLLATE "C" NOT NULL,
     marked boolean NOT NULL DEFAULT false,
     watched_until_ms bigint NOT NULL DEFAULT 0,
     lease_token bigint,
     lease_until_ms bigint,
     lease_run text,
     last_id text COLLATE "C",
     state text,
     rest text,
     settings text
   ) WITH (fillfactor = 50);
   CREATE INDEX sessions_by_time ON $.sessions (listed_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_by_user ON $.sessions (user_id, listed_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_by_cwd ON $.sessions (cwd, listed_at, id) WHERE deleted_at IS NULL;
   CREATE INDEX sessions_open ON $.sessions (user_id) WHERE deleted_at IS NULL AND status IN ('active', 'suspended');
   CREATE INDEX sessions_idle ON $.sessions (idle_at, id) WHERE deleted_at IS NULL AND status IN ('active', 'suspended');
   CREATE INDEX sessions_unsettled ON $.sessions (user_id, key) WHERE unsettled AND deleted_at IS NULL;
   CREATE INDEX sessions_deleted ON $.sessions (deleted_at) WHERE deleted_at IS NOT NULL;
   CREATE INDEX sessions_by_origin ON $.sessions (origin_key) WHERE origin_key IS NOT NULL;
   CREATE INDEX sessions_unsearched ON $.sessions (key) WHERE unsearched;
   CREATE TABLE $.entries (
     session_key bigint NOT NULL,
     seq bigint NOT NULL,
     id text COLLATE "C" NOT NULL,
     state text NOT NULL,
     body jsonb NOT NULL,
     PRIMARY KEY (session_key, seq)
   );
   CREATE UNIQUE INDEX entries_by_id ON $.entries (session_key, id);
   CREATE TABLE $.session_parents (
     parent_id text COLLATE "C" NOT NULL,
     session_key bigint NOT NULL REFERENCES $.sessions (key) ON DELETE CASCADE,
     forked boolean NOT NULL,
     PRIMARY KEY (parent_id, session_key)
   );
   CREATE INDEX session_parents_by_session ON $.session_parents (session_key);
   CREATE TABLE $.checkpoints (
     sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     session_key bigint NOT NULL REFERENCES $.sessions (key) ON DELETE CASCADE,
     created_at text COLLATE "C" NOT NULL,
     body text NOT NULL
   );
   CREATE INDEX checkpoints_by_session ON $.checkpoints (session_key, created_at, sequence);
   CREATE TABLE $.search_index (
     session_key bigint NOT NULL,
     block bigint NOT NULL,
     trigrams integer[] NOT NULL,
     PRIMARY KEY (session_key, block)
   );
   CREATE INDEX search_index_trigrams ON $.search_index USING gin (trigrams);`,
  // Existing entries stay as they are and are still read. The database cannot always parse the text of a head as JSON, so LIKE
  // finds the sessions with a started run.
  `COMMENT ON COLUMN $.entries.state IS 'path and head after the entry, with settings by position since version 2';
   CREATE TABLE $.marks (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
   ALTER TABLE $.sessions ADD COLUMN runs smallint, ADD COLUMN runs_due text COLLATE "C";
   UPDATE $.sessions SET runs = 2 FROM $.heads
     WHERE session_key = key AND id IS NOT NULL AND rest LIKE '%"facts":{%"openRuns":["%';
   CREATE INDEX sessions_requested ON $.sessions (listed_at, id) WHERE deleted_at IS NULL AND runs IN (1, 3, 5, 7);
   CREATE INDEX sessions_started ON $.sessions (listed_at, id) WHERE deleted_at IS NULL AND runs IN (2, 3, 6, 7);
   CREATE INDEX sessions_parked ON $.sessions (listed_at, id) WHERE deleted_at IS NULL AND runs IN (4, 5, 6, 7);
   CREATE INDEX sessions_requested_by_user ON $.sessions (user_id, listed_at, id)
     WHERE deleted_at IS NULL AND runs IN (1, 3, 5, 7);
   CREATE INDEX sessions_started_by_user ON $.sessions (user_id, listed_at, id)
     WHERE deleted_at IS NULL AND runs IN (2, 3, 6, 7);
   CREATE INDEX sessions_parked_by_user ON $.sessions (user_id, listed_at, id)
     WHERE deleted_at IS NULL AND runs IN (4, 5, 6, 7);
   CREATE INDEX sessions_due ON $.sessions (runs_due) WHERE deleted_at IS NULL AND runs_due IS NOT NULL;`,
  // The other parts of a head are now read from the state of the last entry and the rows that it refers to.
  `ALTER TABLE $.heads DROP COLUMN last_id, DROP COLUMN state, DROP COLUMN rest, DROP COLUMN settings`,
  // ANALYZE, which autovacuum runs, would copy texts and names of users into pg_statistic, where an erasure cannot find them.
  withoutStatistics(UNSAMPLED_BEFORE_LEDGER),
  // From this version on, logs may have format 3, which earlier versions of Skein must refuse to open.
  `COMMENT ON COLUMN $.entries.body IS 'up to format 3 of the log since version 5'`,
  `CREATE TABLE $.spending (
     user_id text COLLATE "C" PRIMARY KEY,
     stamp text NOT NULL,
     page text NOT NULL
   ) WITH (fillfactor = 50);
   CREATE TABLE $.spending_hours (
     user_id text COLLATE "C" NOT NULL,
     hour bigint NOT NULL,
     total_tokens bigint NOT NULL,
     cost double precision NOT NULL,
     PRIMARY KEY (user_id, hour)
   );${withoutStatistics(UNSAMPLED_IN_LEDGER)}`,
  // Rewrites the table. Existing entries keep the order of keys that jsonb gave them.
  `ALTER TABLE $.entries ALTER COLUMN body TYPE json USING body::text::json, ALTER COLUMN body SET STATISTICS 0`,
  `CREATE TABLE $.blobs (
     scope text COLLATE "C" NOT NULL,
     hash text COLLATE "C" NOT NULL,
     size bigint NOT NULL,
     renewed_ms bigint NOT NULL,
     chunks text COLLATE "C" NOT NULL UNIQUE,
     PRIMARY KEY (scope, hash)
   );
   CREATE TABLE $.blob_chunks (
     chunks text COLLATE "C" NOT NULL,
     number bigint NOT NULL,
     written_ms bigint NOT NULL,
     data bytea NOT NULL,
     PRIMARY KEY (chunks, number)
   );
   ALTER TABLE $.blob_chunks ALTER COLUMN data SET STORAGE EXTERNAL;${withoutStatistics(UNSAMPLED_IN_BLOBS)}`,
];

function withoutStatistics(unsampled: UnsampledColumns): string {
  return Object.entries(unsampled)
    .map(([table, columns]) => {
      const changes = Object.keys(columns).map((column) => `ALTER COLUMN ${column} SET STATISTICS 0`);
      return `ALTER TABLE $.${table} ${changes.join(", ")}`;
    })
    .join(";");
}

/**
 * Migrates the database to the current schema. Several processes may do so at the same time.
 *
 * @throws {SessionError} `UNSUPPORTED_VERSION` for a later schema, `STORE_FAILED` for the schema of another program. The
 * schema is then left unchanged.
 */
export async function prepareDatabase(handle: PostgresHandle): Promise<void> {
  // With `write` and not `rows`, which would retry while the server cannot be reached.
  const version = await versionOf(handle, { rows: (sql) => handle.write(sql) }).catch((error: unknown) => {
    // The schema or its table does not exist.
    if (hasState(error, "3F000", "42P01")) return null;
    throw error;
  });
  if (version === MIGRATIONS.length) return;
  await handle.transaction((transaction) => migrate(handle, transaction));
}

async function migrate(handle: PostgresHandle, transaction: Transaction): Promise<void> {
  // This lock lasts until the transaction ends. Other processes that open the store wait here, and then find the schema migrated.
  await transaction.rows("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", [`skein ${handle.schema}`]);
  await checkEncoding(handle, transaction);
  const found = await stateOf(handle, transaction);
  if (found !== "ours") {
    // A user without the right to create schemas can use an empty one that an administrator created.
    if (found === "missing") await transaction.change(`CREATE SCHEMA ${handle.schema}`);
    await transaction.change(`CREATE TABLE ${handle.schema}.skein_schema (version integer NOT NULL)`);
    await transaction.change(`INSERT INTO ${handle.schema}.skein_schema VALUES (0)`);
  }
  for (const migration of MIGRATIONS.slice(await versionOf(handle, transaction))) {
    for (const statement of migration.split(";").filter((each) => each.trim() !== "")) {
      await transaction.change(statement.replaceAll("$.", `${handle.schema}.`));
    }
  }
  await transaction.change(`UPDATE ${handle.schema}.skein_schema SET version = ${MIGRATIONS.length}`);
}

async function stateOf(handle: PostgresHandle, transaction: Transaction): Promise<"ours" | "empty" | "missing"> {
  const [found] = await transaction.rows<{ ours: boolean; missing: boolean; tables: string }>(
    `SELECT to_regclass($1::text) IS NOT NULL AS ours, to_regnamespace($2::text) IS NULL AS missing,
       (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($2::text)) AS tables`,
    [`${handle.schema}.skein_schema`, handle.schema],
  );
  if (found?.ours === true) return "ours";
  if (found?.missing === true) return "missing";
  if (Number(found?.tables) === 0) return "empty";
  throw new SessionError(
    "STORE_FAILED",
    `The schema ${handle.schema} of the PostgreSQL database ${handle.address} belongs to another program; choose a separate schema for skein.`,
  );
}

async function versionOf(handle: PostgresHandle, reader: Pick<Transaction, "rows">): Promise<number> {
  const [row] = await reader.rows<{ version: number }>(`SELECT version FROM ${handle.schema}.skein_schema`);
  const version = Number(row?.version ?? 0);
  if (version <= MIGRATIONS.length) return version;
  throw new SessionError(
    "UNSUPPORTED_VERSION",
    `The schema ${handle.schema} of the PostgreSQL database ${handle.address} has version ${version}; this version of skein knows ${MIGRATIONS.length}, so update skein to open it.`,
  );
}

async function checkEncoding(handle: PostgresHandle, transaction: Transaction): Promise<void> {
  const [row] = await transaction.rows<{ encoding: string }>("SELECT current_setting('server_encoding') AS encoding");
  if (row?.encoding === "UTF8") return;
  throw new SessionError(
    "STORE_FAILED",
    `The PostgreSQL database ${handle.address} has the encoding ${row?.encoding}; skein needs one with the encoding UTF8.`,
  );
}
