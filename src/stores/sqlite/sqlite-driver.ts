import type { SessionHead } from "../../session/log/fold.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { SqlDriver } from "../sql/sql-driver.ts";
import type { SqlSession } from "../sql/sql-port.ts";
import { LeaseRows } from "./lease-rows.ts";
import { Listing } from "./listing.ts";
import { canIndexTexts, SearchIndex } from "./search-index.ts";
import { leftoversOf, removalStatements, rewriteFile } from "./removal.ts";
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
    const removal = removalStatements(handle, index);
    const rewriting = { rewrite: () => rewriteFile(handle), leftovers: () => leftoversOf(handle) };
    super(handle, { port, cache, clock, listing, removal, index, ...rewriting });
    // A database file outlives the process, and other processes can open it.
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
    // In one transaction: locking the file for each statement would cost more than reading.
    return this.#handle.snapshot(() => sessionIds.map((id) => this.#port.load(id)?.head ?? null));
  }

  async ping(): Promise<void> {
    this.#handle.row("SELECT count(*) FROM sqlite_schema");
  }

  async close(): Promise<void> {
    try {
      // Not every driver checkpoints the write-ahead log when it closes, but a copy of the file must be complete. This does
      // not wait for other connections, as the last one to close checkpoints for all.
      if (this.#handle.ownsConnection) this.#handle.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Nothing is lost: the next connection reads the write-ahead log.
    }
    this.#handle.close();
  }
}
