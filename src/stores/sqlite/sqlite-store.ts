import { dirname, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { claimPrivateFile, makePrivateDirectory, narrowPrivateFile } from "../../internal/private-file.ts";
import { SessionError, show } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
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
  const { path, durability = "flush", database, clock = () => new Date() } = checkOptions(options);
  const place = path === MEMORY ? MEMORY : resolve(path);
  if (place !== MEMORY) hideFromSandboxes(place);
  if (place !== MEMORY && database === undefined) await makeFile(place);
  const connection = database ?? (await openSqlite(place, options.driver));
  const handle = new SqliteHandle(connection, place, database === undefined);
  try {
    await prepare(handle, durability);
    const store = createStore(new SqliteDriver(handle, clock), { clock });
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
async function makeFile(place: string): Promise<void> {
  const directory = dirname(place);
  try {
    await makePrivateDirectory(directory);
  } catch (cause) {
    throw new SessionError("STORE_FAILED", `The directory ${directory} of the database cannot be made.`, { cause });
  }
  try {
    claimPrivateFile(place);
    for (const ending of ["-wal", "-shm"]) narrowPrivateFile(`${place}${ending}`);
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

function checkOptions(options: SqliteStoreOptions): SqliteStoreOptions {
  if (typeof options !== "object" || options === null) throw invalid("options", options);
  const { path, driver, durability, clock } = options;
  if (typeof path !== "string" || path === "" || path.includes("\0")) throw invalid("path", path);
  if (driver !== undefined && driver !== "node:sqlite" && driver !== "libsql") throw invalid("driver", driver);
  if (durability !== undefined && durability !== "flush" && durability !== "fsync")
    throw invalid("durability", durability);
  if (clock !== undefined && typeof clock !== "function") throw invalid("clock", clock);
  return options;
}

function invalid(name: string, value: unknown): SessionError {
  return new SessionError("INVALID_OPTION", `The option ${name} of an SQLite store cannot be ${show(value)}.`);
}
