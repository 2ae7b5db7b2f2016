import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import { BLOB_OPTIONS, type BlobOptions } from "../../session/blob.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { checkChoice, checkClock, checkCount, invalidOption } from "../complete/valid-arguments.ts";
import { hasTransform, isPostgresClient, openPostgres, type PostgresClient, usePostgres } from "./open-postgres.ts";
import { isPgClient, isPgPool, type PgClient, PgConnection, type PgPool } from "./pg-connection.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { PostgresDriver } from "./postgres-driver.ts";
import { PostgresHandle } from "./postgres-handle.ts";
import { prepareDatabase } from "./schema.ts";

/** Options of `openPostgresStore`: either a URL, or a client of yours. */
export interface PostgresStoreOptions extends BlobOptions {
  /** The URL of the database, as in `postgres://user:password@host:5432/database`. */
  readonly url?: string;
  /** A client to use instead: of the package `postgres`, or a pool or client of `pg`. You close it yourself. */
  readonly sql?: PostgresClient | PgPool | PgClient;
  /** The schema with the tables of the store (default `skein`), created if it does not exist. */
  readonly schema?: string;
  /** How long one statement may take (default 30,000; 0 for the limit of the server). Only with a URL. */
  readonly statementTimeoutMs?: number;
  /** The most connections to open (default 10), not counting the one that listens. Only with a URL. */
  readonly connectionsMax?: number;
  /** Whether to use named prepared statements (default true). Set it to false behind a transaction-pooling proxy without support for them. */
  readonly prepare?: boolean;
  /** How to watch for appends of other processes: `"push"` (default) uses LISTEN; `"poll"` also works behind a proxy. */
  readonly watch?: "push" | "poll";
  /** The clock to use. By default, the system clock, but for leases the clock of the database. */
  readonly clock?: () => Date;
}

const SCHEMA_CHARACTERS_MAX = 48;
const STATEMENT_TIMEOUT_MS_MAX = 24 * 60 * 60 * 1000;
const CONNECTIONS_MAX = 1000;

/**
 * Opens a store in a schema of a PostgreSQL database, which any number of processes can share.
 *
 * @throws {SessionError} `DRIVER_MISSING` without a client, `UNSUPPORTED_VERSION` for a schema of a later version,
 * `READ_ONLY` if the schema is missing in a read-only database, `STORE_FAILED` if the database cannot be used.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<SessionStore> {
  checkPostgresOptions(options);
  const handle = new PostgresHandle(await connect(options), options.schema ?? "skein");
  try {
    await prepareDatabase(handle);
    return createStore(new PostgresDriver(handle, options), options);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function connect(options: PostgresStoreOptions): Promise<PostgresConnection> {
  const { url, sql, prepare = true } = options;
  if (url !== undefined) return openPostgres(url, options);
  return isPostgresClient(sql) ? usePostgres(sql, prepare) : new PgConnection(sql as PgPool | PgClient, prepare);
}

const OPTIONS: KeysOf<PostgresStoreOptions> = {
  url: true,
  sql: true,
  schema: true,
  statementTimeoutMs: true,
  connectionsMax: true,
  prepare: true,
  watch: true,
  clock: true,
  ...BLOB_OPTIONS,
};

function checkPostgresOptions(options: PostgresStoreOptions): void {
  checkOptionsOf(options, OPTIONS, "openPostgresStore");
  const { url, sql, schema, statementTimeoutMs, connectionsMax, prepare, watch, clock } = options;
  if ((url === undefined) === (sql === undefined)) {
    throw new SessionError(
      "INVALID_OPTION",
      "A PostgreSQL store needs either the option url or a client as the option sql.",
    );
  }
  if (url !== undefined) checkUrl(url);
  else checkClient(sql, statementTimeoutMs ?? connectionsMax);
  if (schema !== undefined && !isSchemaName(schema))
    throw invalidOption(
      "schema",
      schema,
      "at most 48 lower-case letters, digits and underscores, not beginning with pg_",
    );
  if (statementTimeoutMs !== undefined)
    checkCount(statementTimeoutMs, "statementTimeoutMs", 0, STATEMENT_TIMEOUT_MS_MAX);
  if (connectionsMax !== undefined) checkCount(connectionsMax, "connectionsMax", 1, CONNECTIONS_MAX);
  checkChoice(prepare, "prepare", [true, false]);
  checkChoice(watch, "watch", ["push", "poll"]);
  checkClock(clock);
}

/** No message shows the URL, as it contains a password. */
function checkUrl(url: unknown): void {
  if (typeof url === "string" && /^postgres(?:ql)?:\/\/[^\0]+$/.test(url) && URL.canParse(url)) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The url of a PostgreSQL store must look like postgres://user:password@host:5432/database; encode special characters of the password.",
  );
}

function checkClient(sql: unknown, settings: unknown): void {
  if (!isPostgresClient(sql) && !isPgPool(sql) && !isPgClient(sql)) {
    throw new SessionError(
      "INVALID_OPTION",
      "The option sql of a PostgreSQL store must be a client of the package postgres, or a pool or client of pg.",
    );
  }
  if (isPostgresClient(sql) && hasTransform(sql)) {
    throw new SessionError(
      "INVALID_OPTION",
      "The client given to a PostgreSQL store transforms the rows that it reads; pass one without the option transform.",
    );
  }
  if (settings !== undefined) {
    throw new SessionError(
      "INVALID_OPTION",
      "The options statementTimeoutMs and connectionsMax need a url; set them on your own client instead.",
    );
  }
}

function isSchemaName(schema: unknown): boolean {
  if (typeof schema !== "string" || schema.length > SCHEMA_CHARACTERS_MAX) return false;
  return /^[a-z_][a-z0-9_]*$/.test(schema) && !schema.startsWith("pg_");
}
