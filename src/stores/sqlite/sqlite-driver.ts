import type { SessionHead } from "../../session/log/fold.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { SqlDriver } from "../sql/sql-driver.ts";
import type { SqlSession } from "../sql/sql-eraser.ts";
import { LeaseRows } from "./lease-rows.ts";
import { Listing } from "./listing.ts";
import { removalSteps } from "./removal-steps.ts";
import { canIndexTexts, SearchIndex } from "./search-index.ts";
import { leftoversOf, rewriteFile } from "./rewrite-file.ts";
import { MEMORY, type SqliteHandle } from "./sqlite-handle.ts";
import { SqlitePort } from "./sqlite-port.ts";

/** Keeps sessions in an SQLite database. Every operation is one call into SQLite or one transaction. */
export class SqliteDriver extends SqlDriver<SqlSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  override readonly appendsAtOnce = true;
  readonly leases: LeaseRows;
  readonly #handle: SqliteHandle;
  readonly #port: SqlitePort;

  constructor(handle: SqliteHandle, clock: () => Date) {
    const leases = new LeaseRows(handle, clock);
    const cache = new SessionCache<SqlSession>();
    const port = new SqlitePort(handle, cache, leases);
    const index = canIndexTexts(handle) ? new SearchIndex(handle) : null;
    const listing = new Listing(port, leases);
    const removal = removalSteps(handle, index);
    const rewriting = { rewrite: () => rewriteFile(handle), leftovers: () => leftoversOf(handle) };
    super(handle, { port, cache, clock, listing, removal, index, ...rewriting });
    // A database in a file outlives the process, and others can open it.
    const file = handle.address !== MEMORY;
    this.capabilities = {
      durable: file,
      shared: file,
      forkByReference: true,
      search: "index",
      watch: "poll",
      lease: file ? "shared" : "process",
      ...(file ? { path: handle.address } : {}),
    };
    this.leases = leases;
    this.#handle = handle;
    this.#port = port;
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    // In one transaction, as each statement would take and let go of a lock on the file, which costs more than what it reads.
    return this.#handle.snapshot(() => sessionIds.map((id) => this.#port.load(id)?.head ?? null));
  }

  async ping(): Promise<void> {
    this.#handle.row("SELECT count(*) FROM sqlite_schema");
  }

  async close(): Promise<void> {
    try {
      // Not every driver brings the write-ahead log home when it closes; whoever copies the file wants it whole.
      // It is not worth waiting for, as the last to close does it for all.
      if (this.#handle.ownsConnection) this.#handle.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Nothing is lost: the next one to open the database finds the log.
    }
    this.#handle.close();
  }
}
