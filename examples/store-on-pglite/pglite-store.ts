import type { PGliteInterface } from "@electric-sql/pglite";
import type { SessionHead, SessionStore } from "skein";
import {
  createStore,
  runsKindOf,
  type ListPosition,
  RowDriver,
  RUNS_BITS,
  type Segment,
  SessionCache,
  type SessionListing,
  type SessionQuery,
  type StoreCapabilities,
  type StoreDriver,
} from "skein/store";
import { prepareDatabase, select } from "./database.ts";
import { SessionCheckpoints } from "./session-checkpoints.ts";
import { SessionLeases } from "./session-leases.ts";
import { SessionRemoval } from "./session-removal.ts";
import { type LoadedSession, SESSION_COLUMNS, type SessionRow, SessionRows } from "./session-rows.ts";

/** Opens a store in a PGlite database, which may hold other tables and other stores; the caller closes the database. */
export async function openPgliteStore(database: PGliteInterface): Promise<SessionStore> {
  await prepareDatabase(database);
  return createStore(new PgliteDriver(database));
}

/** The parts of a store that the row engine lacks. Search and sums are left to `createStore`. */
class PgliteDriver extends RowDriver<Segment, LoadedSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly leases: SessionLeases;
  readonly #database: PGliteInterface;

  constructor(database: PGliteInterface) {
    const cache = new SessionCache<LoadedSession>();
    const port = new SessionRows(database, cache);
    super({
      port,
      cache,
      clock: () => new Date(),
      listing: new PgliteListing(database, port),
      removal: new SessionRemoval(database),
      checkpoints: new SessionCheckpoints(database),
    });
    this.capabilities = capabilitiesOf(database);
    this.leases = new SessionLeases(database);
    this.#database = database;
  }

  async ping(): Promise<void> {
    await select(this.#database, "SELECT 1");
  }

  async close(): Promise<void> {}
}

class PgliteListing implements SessionListing {
  readonly #database: PGliteInterface;
  readonly #rows: SessionRows;

  constructor(database: PGliteInterface, rows: SessionRows) {
    this.#database = database;
    this.#rows = rows;
  }

  list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<SessionHead[]> {
    const { sql, values } = filterOf(query);
    const bind = (value: unknown): string => `$${values.push(value)}`;
    const from = after === null ? "" : `AND (modified_at, id) < (${bind(after.modifiedAt)}, ${bind(after.id)})`;
    return this.#heads(`${sql} ${from} ORDER BY modified_at DESC, id DESC LIMIT ${bind(limit)}`, values);
  }

  async count(query: SessionQuery): Promise<number> {
    const { sql, values } = filterOf(query);
    const counting = `SELECT count(*) AS count FROM skein.sessions WHERE ${sql}`;
    const [row] = await select<{ count: number }>(this.#database, counting, values);
    return row?.count ?? 0;
  }

  idleSince(before: string, limit: number): Promise<SessionHead[]> {
    const idle = "deleted_at IS NULL AND status IN ('active', 'suspended') AND updated_at < $1";
    return this.#heads(`${idle} ORDER BY updated_at, id LIMIT $2`, [before, limit]);
  }

  async #heads(where: string, values: readonly unknown[]): Promise<SessionHead[]> {
    const sql = `SELECT ${SESSION_COLUMNS} FROM skein.sessions WHERE ${where}`;
    const rows = await select<SessionRow>(this.#database, sql, values);
    return (await Promise.all(rows.map((row) => this.#rows.sessionOf(row)))).map(({ head }) => head);
  }
}

/** The conditions of a query on a session's row, and the bound parameters. */
function filterOf(query: SessionQuery): { readonly sql: string; readonly values: unknown[] } {
  const { userId, cwd, status, parentId, runs, dueBefore, deleted } = query;
  // A purged session that forks build on is deleted and has no id.
  const conditions = [deleted === true ? "deleted_at IS NOT NULL AND id IS NOT NULL" : "deleted_at IS NULL"];
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  if (userId !== undefined) conditions.push(`user_id = ${bind(userId)}`);
  if (cwd !== undefined) conditions.push(`cwd = ${bind(cwd)}`);
  if (status !== undefined) conditions.push(`status = ANY (${bind([status].flat())}::text[])`);
  if (parentId !== undefined) conditions.push(`parents @> ARRAY[${bind(parentId)}]`);
  if (runs !== undefined) conditions.push(`runs & ${RUNS_BITS[runsKindOf(runs)]} <> 0`);
  if (runs === "running" || runs === "interrupted") {
    const held = `EXISTS (SELECT 1 FROM skein.leases WHERE session_key = key AND expires_ms > ${bind(Date.now())})`;
    conditions.push(runs === "running" ? held : `NOT ${held}`);
  }
  if (dueBefore !== undefined) conditions.push(`runs_due < ${bind(dueBefore)}`);
  return { sql: conditions.join(" AND "), values };
}

/** A database in a directory outlives the process. Others may open a store on it too, as tabs do with a `PGliteWorker`. */
function capabilitiesOf({ dataDir = "memory://" }: PGliteInterface & { readonly dataDir?: string }): StoreCapabilities {
  return {
    durable: !dataDir.startsWith("memory://"),
    shared: true,
    forkByReference: true,
    search: "scan",
    watch: "poll",
    lease: "shared",
  };
}
