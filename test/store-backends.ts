import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "../src/session/store.ts";
import { openJsonlStore } from "../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { openPostgresStore } from "../src/stores/postgres/index.ts";
import { openRedisStore } from "../src/stores/redis/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import { onFileEnd } from "./on-file-end.ts";
import { postgresPool, postgresUrl } from "./postgres-server.ts";
import { ioRedisClient, redisPrefix, redisSkip, redisUrl } from "./redis-server.ts";

/** A kind of store. */
export interface Backend {
  readonly name: string;
  /** Opens the store of a directory. Opening it again for the same directory gives the same sessions. */
  open(directory: string): Promise<SessionStore>;
  /** The only allowed reasons for skipping a case. */
  readonly skips: readonly string[];
}

/** The drivers of SQLite that this version of Node can run. */
export const sqliteDrivers: readonly ("node:sqlite" | "libsql")[] = process.getBuiltinModule("node:sqlite")
  ? ["libsql", "node:sqlite"]
  : ["libsql"];

const redisBackends: readonly Backend[] = [
  {
    name: "redis",
    open: async (directory) => openRedisStore({ url: await redisUrl(), prefix: prefixOf(directory) }),
    skips: [],
  },
  {
    name: "redis (ioredis)",
    open: async (directory) => openRedisStore({ client: await ioRedisClient(), prefix: prefixOf(directory) }),
    skips: [],
  },
];

/** Kinds of stores that cannot run on this machine, and the reason. */
export const missingBackends: readonly { readonly name: string; readonly reason: string }[] = redisBackends.flatMap(
  ({ name }) => (redisSkip === null ? [] : { name, reason: redisSkip }),
);

const all: readonly Backend[] = [
  {
    name: "memory",
    open: async () => openMemoryStore(),
    skips: ["the store does not outlive the process", "the store belongs to one process"],
  },
  { name: "jsonl", open: (directory) => openJsonlStore({ directory }), skips: [] },
  ...sqliteDrivers.map((driver) => ({
    name: `sqlite (${driver})`,
    open: (directory: string) => openSqliteStore({ path: join(directory, "skein.db"), driver, create: true }),
    skips: [],
  })),
  {
    name: "postgres",
    // Few connections, because opening them takes most of the time of a short test.
    open: async (directory) =>
      openPostgresStore({ url: await postgresUrl(), schema: await schemaOf(directory), connectionsMax: 3 }),
    skips: [],
  },
  {
    name: "postgres (pg)",
    open: async (directory) => openPostgresStore({ sql: await postgresPool(), schema: await schemaOf(directory) }),
    skips: [],
  },
  ...(redisSkip === null ? redisBackends : []),
];

/** Every kind of store with every driver, or those whose name begins with `SKEIN_TEST_STORE`. */
export const everyDriver: readonly Backend[] = all.filter(({ name }) =>
  name.startsWith(process.env["SKEIN_TEST_STORE"] ?? ""),
);

/**
 * Every kind of store with one driver, for tests of code that works on any store. It is the last of its drivers, which shares
 * its connections among the tests of a file.
 */
export const backends: readonly Backend[] = [
  ...new Map(everyDriver.map((backend) => [kindOf(backend.name), backend])).values(),
];

/** The kind of a store without its client: `sqlite` for `sqlite (libsql)`. */
export function kindOf(name: string): string {
  return name.split(" ")[0] ?? name;
}

const schemas = new Map<string, Promise<string>>();
let schemaCount = 0;

/** The database schema that is used in place of a directory. */
function schemaOf(directory: string): Promise<string> {
  if (schemas.size === 0) onFileEnd(() => schemas.clear());
  const schema = schemas.get(directory) ?? reuseSchema(directory);
  schemas.set(directory, schema);
  return schema;
}

/**
 * Empties and reuses the schema of a deleted directory, because creating a schema takes longer than most tests. Returns a new
 * name if there is none to reuse.
 */
async function reuseSchema(directory: string): Promise<string> {
  mkdirSync(directory, { recursive: true });
  const unused = [...schemas].find(([each]) => !existsSync(each));
  if (unused === undefined) return `skein_${schemaCount++}`;
  schemas.delete(unused[0]);
  const schema = await unused[1];
  const pool = await postgresPool();
  const { rows } = await pool.query<{ name: string }>("SELECT tablename AS name FROM pg_tables WHERE schemaname = $1", [
    schema,
  ]);
  const filled = rows.filter(({ name }) => name !== "skein_schema");
  await pool.query(filled.map(({ name }) => `DELETE FROM ${schema}.${name}`).join(";"));
  return schema;
}

/** The key prefix that is used in place of a directory. */
function prefixOf(directory: string): string {
  return `${redisPrefix}:${createHash("sha256").update(directory).digest("hex").slice(0, 24)}`;
}
