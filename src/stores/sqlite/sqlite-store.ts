import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { claimPrivateFile, narrowPrivateFile } from "../../internal/private-file.ts";
import { SessionError } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { checkChoice, checkClock, checkPath } from "../complete/valid-arguments.ts";
import { makeParent } from "../named-path.ts";
import { openSqlite } from "./open-sqlite.ts";
import { rewriteFile } from "./rewrite-file.ts";
import { prepareDatabase } from "./schema.ts";
import { SqliteDriver } from "./sqlite-driver.ts";
import { MEMORY, type SqliteDatabase, SqliteHandle } from "./sqlite-handle.ts";

/** How an SQLite store is opened. */
export interface SqliteStoreOptions {
  /** The database file, made if it is not there; `":memory:"` for one that ends with the store. */
  readonly path: string;
  /** Which driver to use: the runtime's own where it has one (Node 22.13 and later), else the package `libsql`. */
  readonly driver?: "node:sqlite" | "libsql";
  /** A connection of the caller's to use instead, of better-sqlite3 or one like it; the caller closes it. */
  readonly database?: SqliteDatabase;
  /** Makes the directories above the file, too; without it, a missing one is refused. */
  readonly create?: boolean;
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** What time it is; the system's clock unless given. */
  readonly clock?: () => Date;
}

/** A store in an SQLite file. */
export interface SqliteStore extends SessionStore {
  /**
   * Gives the space of purged sessions back to the file system. It rewrites the whole file, which takes as much space
   * again while it lasts, and nobody can write meanwhile.
   *
   * @throws {SessionError} `SESSION_BUSY` while others write, `STORE_FAILED` when there is no room for it.
   */
  vacuum(): Promise<void>;
}

const PREPARE_ATTEMPTS_MAX = 100;
const PREPARE_WAIT_MS = 50;

/**
 * Opens a store in one SQLite file, which any number of processes on the machine may use at once.
 *
 * @throws {SessionError} `DRIVER_MISSING` without a driver, `UNSUPPORTED_VERSION` for a database of a later version,
 * `SESSION_BUSY` for one that stays locked, `STORE_FAILED` for one that cannot be used.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const {
    path,
    create = false,
    durability = "flush",
    database,
    clock = () => new Date(),
  } = checkSqliteOptions(options);
  const address = path === MEMORY ? MEMORY : resolve(path);
  if (address !== MEMORY) hideFromSandboxes(address);
  if (address !== MEMORY && database === undefined) await makeFile(address, create);
  const connection = database ?? (await openSqlite(address, options.driver));
  const handle = new SqliteHandle(connection, address, database === undefined);
  try {
    await prepare(handle, durability);
    const store = createStore(new SqliteDriver(handle, clock));
    return Object.assign(store, {
      async vacuum(): Promise<void> {
        await store.ping();
        await rewriteFile(handle);
      },
    });
  } catch (error) {
    handle.close();
    throw error;
  }
}

/** The file and those beside it, which take their mode from it, are for their owner alone. */
async function makeFile(address: string, create: boolean): Promise<void> {
  await makeParent(address, { create, what: "the store" });
  try {
    claimPrivateFile(address);
    for (const ending of ["-wal", "-shm"]) narrowPrivateFile(`${address}${ending}`);
  } catch {
    // SQLite says best what keeps it from using the file.
  }
}

async function prepare(handle: SqliteHandle, durability: "flush" | "fsync"): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return prepareDatabase(handle, durability);
    } catch (error) {
      // Turning the write-ahead log on does not wait its turn as everything else does when several processes start.
      const busy = error instanceof SessionError && error.code === "SESSION_BUSY";
      if (!busy || attempt === PREPARE_ATTEMPTS_MAX) throw error;
      await wait(PREPARE_WAIT_MS);
    }
  }
}

const OPTIONS: KeysOf<SqliteStoreOptions> = {
  path: true,
  driver: true,
  database: true,
  durability: true,
  clock: true,
  create: true,
};

function checkSqliteOptions(options: SqliteStoreOptions): SqliteStoreOptions {
  checkOptionsOf(options, OPTIONS, "openSqliteStore");
  checkPath(options.path, "path");
  checkChoice(options.driver, "driver", ["node:sqlite", "libsql"]);
  checkChoice(options.durability, "durability", ["flush", "fsync"]);
  checkClock(options.clock);
  return options;
}
