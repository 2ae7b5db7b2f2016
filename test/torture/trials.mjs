import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import Database from "libsql";
import postgres from "postgres";
import { startPostgres } from "../../scripts/postgres.mjs";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";

/** @typedef {import("./crew.mjs").Crew} Crew */
/** @typedef {import("../../scripts/test-server.mjs").TestServer} TestServer */

/**
 * The store of a trial.
 * @typedef {object} Place
 * @property {string} address
 * @property {(crew: Crew) => Promise<boolean>} strike injects a fault; false if there was no target
 * @property {() => readonly string[]} [problems] what the store's own engine reports as damaged in the end
 * @property {() => Promise<void>} close
 */

/**
 * A kind of fault, injected into a kind of store.
 * @typedef {object} Trial
 * @property {"writers" | "connections" | "restarts"} kind
 * @property {string} store
 * @property {() => string | null} missing why it cannot be tried here
 * @property {() => Promise<Place>} open
 */

/** The configuration with which a Redis server keeps every acknowledged write, also when it is killed. */
const durable = ["--appendonly", "yes", "--appendfsync", "always"];
const awayMsMax = 100;
/** The number of temporary files that killed writers may leave. */
const leftMax = 30;
const nothing = () => null;

/** Every trial there is. @type {readonly Trial[]} */
export const trials = [
  { kind: "writers", store: "jsonl", missing: nothing, open: async () => jsonlPlace("flush") },
  { kind: "writers", store: "jsonl (fsync)", missing: nothing, open: async () => jsonlPlace("fsync") },
  { kind: "writers", store: "sqlite", missing: nothing, open: async () => sqlitePlace("flush") },
  { kind: "writers", store: "sqlite (fsync)", missing: nothing, open: async () => sqlitePlace("fsync") },
  { kind: "writers", store: "postgres", missing: nothing, open: () => postgresPlace(() => killOne) },
  { kind: "writers", store: "redis", missing: redisMissing, open: () => redisPlace(() => killOne) },
  { kind: "connections", store: "postgres", missing: nothing, open: () => postgresPlace(endBackend) },
  { kind: "connections", store: "redis", missing: redisMissing, open: () => redisPlace(endClient) },
  {
    kind: "restarts",
    store: "postgres",
    missing: nothing,
    // A smart shutdown, an immediate shutdown, and a crash.
    open: () => postgresPlace((server) => restart(server, [null, "SIGQUIT", "SIGKILL"])),
  },
  {
    kind: "restarts",
    store: "redis",
    missing: redisMissing,
    open: () => redisPlace((server) => restart(server, [null, "SIGKILL"])),
  },
];

/** @param {Crew} crew */
async function killOne(crew) {
  return crew.killOne();
}

/** @param {"flush" | "fsync"} durability */
function jsonlPlace(durability) {
  const directory = mkdtempSync(join(tmpdir(), "skein-torture-"));
  return {
    address: `jsonl:${directory}#${durability}`,
    strike: killOne,
    problems: () => leftIn(join(directory, ".index")),
    close: async () => remove(directory),
  };
}

/** @param {"flush" | "fsync"} durability */
function sqlitePlace(durability) {
  const directory = mkdtempSync(join(tmpdir(), "skein-torture-"));
  const path = join(directory, "skein.db");
  return {
    address: `sqlite:${path}#${durability}`,
    strike: killOne,
    problems: () => integrityOf(path),
    close: async () => remove(directory),
  };
}

/** @param {string} directory */
function remove(directory) {
  rmSync(directory, { recursive: true, force: true });
}

/**
 * Killed in passing, writers leave little behind, and nothing grows with their number.
 * @param {string} folder
 * @returns {string[]}
 */
function leftIn(folder) {
  const left = readdirSync(folder);
  return left.length <= leftMax ? [] : [`${left.length} files are left in the folder of the index.`];
}

/**
 * The problems that SQLite's integrity check finds in a database.
 * @param {string} path
 * @returns {string[]}
 */
function integrityOf(path) {
  const database = new Database(path);
  try {
    const rows = /** @type {{ integrity_check: string }[]} */ (database.prepare("PRAGMA integrity_check").all());
    return rows.map((row) => row.integrity_check).filter((line) => line !== "ok");
  } finally {
    database.close();
  }
}

/**
 * @param {(server: import("../../scripts/postgres.mjs").PostgresServer) => Place["strike"]} strikeOn
 * @returns {Promise<Place>}
 */
async function postgresPlace(strikeOn) {
  const server = await startPostgres();
  return { address: server.url, strike: strikeOn(server), close: server.stop };
}

/**
 * @param {(server: import("../../scripts/redis.mjs").RedisServer) => Place["strike"]} strikeOn
 * @returns {Promise<Place>}
 */
async function redisPlace(strikeOn) {
  const server = await startRedis(durable);
  return { address: server.url, strike: strikeOn(server), close: server.stop };
}

/**
 * Ends a random connection from the server's side.
 * @param {import("../../scripts/postgres.mjs").PostgresServer} server
 * @returns {Place["strike"]}
 */
function endBackend({ url }) {
  return async () => {
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    try {
      const ended = await sql`
        SELECT pg_terminate_backend(pid) FROM (
          SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
          ORDER BY random() LIMIT 1
        ) AS one`;
      return ended.length > 0;
    } finally {
      await sql.end();
    }
  };
}

/**
 * @param {import("../../scripts/redis.mjs").RedisServer} server
 * @returns {Place["strike"]}
 */
function endClient({ url }) {
  return async () => {
    const client = new Redis(url);
    try {
      const own = await client.client("ID");
      const listed = String(await client.client("LIST")).matchAll(/^id=(\d+)/gm);
      const others = [...listed].map(([, id]) => Number(id)).filter((id) => id !== own);
      const chosen = others[Math.floor(Math.random() * others.length)];
      return chosen !== undefined && Number(await client.client("KILL", "ID", chosen)) > 0;
    } finally {
      client.disconnect();
    }
  };
}

/**
 * Ends the server, a different way each time, restarts it after a moment, and waits until all writers have continued.
 * @param {TestServer} server
 * @param {readonly (NodeJS.Signals | null)[]} ways null for an orderly end
 * @returns {Place["strike"]}
 */
function restart(server, ways) {
  let count = 0;
  return async (crew) => {
    const way = ways[count++ % ways.length];
    if (way) server.crash(way);
    await server.halt();
    await wait(Math.random() * awayMsMax);
    await server.resume();
    await crew.progress();
    return true;
  };
}
