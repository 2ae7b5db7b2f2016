import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { checkChoice, checkClock, checkCount, invalidOption } from "../complete/valid-arguments.ts";
import { hasTransform, isPostgresClient, openPostgres, type PostgresClient, usePostgres } from "./open-postgres.ts";
import { isPgClient, isPgPool, type PgClient, PgConnection, type PgPool } from "./pg-connection.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { PostgresDriver } from "./postgres-driver.ts";
import { PostgresHandle } from "./postgres-handle.ts";
import { prepareDatabase } from "./schema.ts";

/** How a PostgreSQL store is opened: with a URL, or with a client of the caller's. */
export interface PostgresStoreOptions {
  /** Where the database is, as in `postgres://user:password@host:5432/database`. */
  readonly url?: string;
  /** A client of the caller's to use instead: of the package `postgres`, or a pool or client of `pg`. The caller closes it. */
  readonly sql?: PostgresClient | PgPool | PgClient;
  /** The schema that holds the store's tables, made if it is not there; `skein` unless given. */
  readonly schema?: string;
  /** How long one statement may take (default 30,000; 0 leaves it to the server). Only with a URL. */
  readonly statementTimeoutMs?: number;
  /** How many connections to open at most (default 10), beside one to listen on. Only with a URL. */
  readonly connectionsMax?: number;
  /** Whether statements are prepared by name (default true); false where a proxy that pools transactions forbids it. */
  readonly prepare?: boolean;
  /** `"push"` (default) listens for what others append; `"poll"` looks for it, which also works behind a proxy. */
  readonly watch?: "push" | "poll";
  /** What time it is; the system's clock unless given, and the database's for leases. */
  readonly clock?: () => Date;
}

const SCHEMA_CHARACTERS_MAX = 48;
const STATEMENT_TIMEOUT_MS_MAX = 24 * 60 * 60 * 1000;
const CONNECTIONS_MAX = 1000;

/**
 * Opens a store in a schema of a PostgreSQL database, which any number of processes may use at once.
 *
 * @throws {SessionError} `DRIVER_MISSING` without a client, `UNSUPPORTED_VERSION` for a schema of a later version,
 * `READ_ONLY` for a database without the schema that may only be read, `STORE_FAILED` for one that cannot be used.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<SessionStore> {
  checkPostgresOptions(options);
  const handle = new PostgresHandle(await connect(options), options.schema ?? "skein");
  try {
    await prepareDatabase(handle);
    return createStore(new PostgresDriver(handle, options));
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
};

function checkPostgresOptions(options: PostgresStoreOptions): void {
  checkOptionsOf(options, OPTIONS, "openPostgresStore");
  const { url, sql, schema, statementTimeoutMs, connectionsMax, prepare, watch, clock } = options;
  if ((url === undefined) === (sql === undefined)) {
    throw new SessionError("INVALID_OPTION", "A PostgreSQL store is opened with either a url or a client as sql.");
  }
  if (url !== undefined) checkUrl(url);
  else checkClient(sql, statementTimeoutMs ?? connectionsMax);
  if (schema !== undefined && !isSchemaName(schema))
    throw invalidOption("schema", schema, "a name of at most 48 small letters, digits and underscores, not of pg_");
  if (statementTimeoutMs !== undefined)
    checkCount(statementTimeoutMs, "statementTimeoutMs", 0, STATEMENT_TIMEOUT_MS_MAX);
  if (connectionsMax !== undefined) checkCount(connectionsMax, "connectionsMax", 1, CONNECTIONS_MAX);
  checkChoice(prepare, "prepare", [true, false]);
  checkChoice(watch, "watch", ["push", "poll"]);
  checkClock(clock);
}

/** The URL is never shown, as it holds a password. */
function checkUrl(url: unknown): void {
  if (typeof url === "string" && /^postgres(?:ql)?:\/\/[^\0]+$/.test(url) && URL.canParse(url)) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The url of a PostgreSQL store is not like postgres://user:password@host:5432/database; encode special characters of the password.",
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
      "The client given to a PostgreSQL store transforms what it reads; give one without the option transform.",
    );
  }
  if (settings !== undefined) {
    throw new SessionError(
      "INVALID_OPTION",
      "The options statementTimeoutMs and connectionsMax go with a url; set them on your own client instead.",
    );
  }
}

function isSchemaName(schema: unknown): boolean {
  if (typeof schema !== "string" || schema.length > SCHEMA_CHARACTERS_MAX) return false;
  return /^[a-z_][a-z0-9_]*$/.test(schema) && !schema.startsWith("pg_");
}
