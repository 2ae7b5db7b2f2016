import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { claimPrivateFile, narrowPrivateFile } from "../../internal/private-file.ts";
import { SessionError } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import { BLOB_OPTIONS, type BlobOptions } from "../../session/blob.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { checkChoice, checkClock, checkPath } from "../complete/valid-arguments.ts";
import { makeParent } from "../named-path.ts";
import { openSqlite } from "./open-sqlite.ts";
import { rewriteFile } from "./removal.ts";
import { prepareDatabase } from "./schema.ts";
import { SqliteDriver } from "./sqlite-driver.ts";
import { MEMORY, type SqliteDatabase, SqliteHandle } from "./sqlite-handle.ts";

/** Options of `openSqliteStore`. */
export interface SqliteStoreOptions extends BlobOptions {
  /** The database file, created if it does not exist; `":memory:"` for a database in memory, which ends with the store. */
  readonly path: string;
  /** The driver to use. Default: `node:sqlite` if this Node has it (22.13 and later), else the package `libsql`. */
  readonly driver?: "node:sqlite" | "libsql";
  /** An open connection to use instead, of better-sqlite3 or a compatible driver. You close it yourself. */
  readonly database?: SqliteDatabase;
  /** Creates missing directories above the file. Without it, a missing directory is an error. */
  readonly create?: boolean;
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** The clock to use; the system clock by default. */
  readonly clock?: () => Date;
}

/** A store in an SQLite file. */
export interface SqliteStore extends SessionStore {
  /**
   * Returns the space of purged sessions to the file system. It rewrites the whole file, which temporarily needs the same
   * space again, and blocks all writes until it is done.
   *
   * @throws {SessionError} `SESSION_BUSY` while others write, `STORE_FAILED` if the disk has no room for the copy.
   */
  vacuum(): Promise<void>;
}

const PREPARE_ATTEMPTS_MAX = 100;
const PREPARE_WAIT_MS = 50;

/**
 * Opens a store in one SQLite file, which any number of processes on the same machine can share.
 *
 * @throws {SessionError} `DRIVER_MISSING` without a driver, `UNSUPPORTED_VERSION` for a database of a later version,
 * `SESSION_BUSY` if it stays locked, `STORE_FAILED` if it cannot be used.
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
    const store = createStore(new SqliteDriver(handle, clock), options);
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

/** Makes the file private to its owner, with the `-wal` and `-shm` files, which SQLite creates with the mode of the file. */
async function makeFile(address: string, create: boolean): Promise<void> {
  await makeParent(address, { create, what: "the store" });
  try {
    claimPrivateFile(address);
    for (const ending of ["-wal", "-shm"]) narrowPrivateFile(`${address}${ending}`);
  } catch {
    // Opening the file will fail with a clearer message from SQLite.
  }
}

async function prepare(handle: SqliteHandle, durability: "flush" | "fsync"): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return prepareDatabase(handle, durability);
    } catch (error) {
      // When several processes start, switching to the write-ahead log fails with BUSY without honouring `busy_timeout`.
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
  ...BLOB_OPTIONS,
};

function checkSqliteOptions(options: SqliteStoreOptions): SqliteStoreOptions {
  checkOptionsOf(options, OPTIONS, "openSqliteStore");
  checkPath(options.path, "path");
  checkChoice(options.driver, "driver", ["node:sqlite", "libsql"]);
  checkChoice(options.durability, "durability", ["flush", "fsync"]);
  checkClock(options.clock);
  return options;
}
