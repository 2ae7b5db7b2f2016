import type { SessionHead } from "../../session/fold.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { SqlDriver } from "../sql/sql-driver.ts";
import type { Leftover } from "../sql/sql-eraser.ts";
import { LeaseRows } from "./lease-rows.ts";
import { Listing } from "./listing.ts";
import { removalSteps } from "./removal-steps.ts";
import { SearchIndex } from "./search-index.ts";
import type { LoadedSession, SessionLog } from "./session-log.ts";
import { leftoversOf, rewriteFile } from "./rewrite-file.ts";
import { Settling } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import { SqlitePort } from "./sqlite-port.ts";

/** How a driver is set up. */
export interface SqliteDriverOptions {
  readonly clock: () => Date;
  /** Whether the database is a file that outlives the process and that others can open. */
  readonly file: boolean;
  /** Whether this SQLite can index texts. */
  readonly searchIndex: boolean;
  /** Whether closing the store closes the connection, or the caller does. */
  readonly ownsHandle: boolean;
}

/** Keeps sessions in an SQLite database. Every operation is one call into SQLite or one transaction. */
export class SqliteDriver extends SqlDriver<LoadedSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  override readonly appendsAtOnce = true;
  readonly leases: LeaseRows;
  readonly #handle: SqliteHandle;
  readonly #ownsHandle: boolean;
  readonly #log: SessionLog;

  constructor(handle: SqliteHandle, { clock, file, searchIndex, ownsHandle }: SqliteDriverOptions) {
    const leases = new LeaseRows(handle, clock);
    const cache = new SessionCache<LoadedSession>();
    const port = new SqlitePort(handle, { cache, leases, clock });
    const settling = new Settling(handle);
    const index = searchIndex ? new SearchIndex(handle, settling) : null;
    const listing = new Listing(handle, { log: port.log, settling, leases });
    const rewrite = (): Promise<void> => rewriteFile(handle);
    const leftovers = (): readonly Leftover[] => leftoversOf(handle);
    super(handle, { port, cache, clock, listing, removal: removalSteps(settling, index), index, rewrite, leftovers });
    this.capabilities = capabilitiesOf(file, handle.place);
    this.leases = leases;
    this.#handle = handle;
    this.#ownsHandle = ownsHandle;
    this.#log = port.log;
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    // In one transaction, as each statement would take and let go of a lock on the file, which costs more than what it reads.
    return this.#handle.snapshot(() => sessionIds.map((id) => this.#log.load(id)?.head ?? null));
  }

  async ping(): Promise<void> {
    this.#handle.prepare("SELECT count(*) FROM sqlite_schema").get([]);
  }

  async close(): Promise<void> {
    if (!this.#ownsHandle) return;
    try {
      // Not every driver brings the write-ahead log home when it closes; whoever copies the file wants it whole.
      // It is not worth waiting for, as the last to close does it for all.
      this.#handle.exec("PRAGMA busy_timeout = 0");
      this.#handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Nothing is lost: the next one to open the database finds the log.
    }
    this.#handle.close();
  }
}

function capabilitiesOf(file: boolean, path: string): StoreCapabilities {
  return {
    durable: file,
    shared: file,
    forkByReference: true,
    search: "index",
    watch: "poll",
    lease: file ? "shared" : "process",
    aggregate: "native",
    ...(file ? { path } : {}),
  };
}
