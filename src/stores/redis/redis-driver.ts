import type { SessionHead } from "../../session/fold.ts";
import type { ListPosition, StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { Checkpoint, SessionPage, SessionQuery, StoreCapabilities, UndeleteOptions } from "../../session/store.ts";
import { RowDriver } from "../rows/row-driver.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { Checkpoints } from "./checkpoints.ts";
import { ForkReferences } from "./fork-references.ts";
import { LeaseScripts } from "./lease-scripts.ts";
import { Listing } from "./listing.ts";
import { Quota } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { RedisPort } from "./redis-port.ts";
import { Removal } from "./removal.ts";
import type { Segment } from "./segments.ts";
import { SessionIndex } from "./session-index.ts";
import { SessionMaker } from "./session-maker.ts";
import type { StoredSession } from "./stored-session.ts";
import { SessionWatchers } from "./session-watchers.ts";

/** How a driver is set up. */
export interface RedisDriverOptions {
  /** What time it is; without it, the system's clock, and for leases the server's. */
  readonly clock: (() => Date) | undefined;
  /** After how long without an append a session runs out, as a backstop. */
  readonly ttlSeconds: number | undefined;
}

/** Keeps sessions in Redis. What is written of a session is written by one script. */
export class RedisDriver extends RowDriver<Segment, StoredSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities = {
    durable: true,
    shared: true,
    forkByReference: true,
    search: "scan",
    watch: "push",
    lease: "shared",
    aggregate: "scan",
  };
  readonly leases: LeaseScripts;
  readonly #handle: RedisHandle;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: Checkpoints;
  readonly #watchers: SessionWatchers;

  constructor(handle: RedisHandle, options: RedisDriverOptions) {
    const { ttlSeconds } = options;
    const clock = options.clock ?? (() => new Date());
    const cache = new SessionCache<StoredSession>();
    const index = new SessionIndex(handle, { clock, ttlSeconds, load: (sessionId) => port.loadAny(sessionId) });
    const quota = new Quota(handle, index);
    const references = new ForkReferences(handle);
    const leases = new LeaseScripts(handle, options.clock);
    const maker = new SessionMaker(handle, { index, quota, references, ttlSeconds });
    const port = new RedisPort(handle, { cache, index, leases, maker, ttlSeconds });
    super(port, cache, clock);
    const listing = new Listing(handle, { index, port, leases });
    this.leases = leases;
    this.#handle = handle;
    this.#listing = listing;
    this.#removal = new Removal(handle, { port, cache, index, quota, listing, references, clock });
    this.#checkpoints = new Checkpoints(handle, port);
    this.#watchers = new SessionWatchers(handle);
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: await this.#listing.list(query, limit, after), damaged: [] };
  }

  count(query: SessionQuery): Promise<number> {
    return this.#listing.count(query);
  }

  delete(sessionId: string): Promise<boolean> {
    return this.#removal.delete(sessionId);
  }

  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#removal.undelete(sessionId, options);
  }

  purge(before: string): Promise<number> {
    return this.#removal.purge(before);
  }

  saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#checkpoints.save(checkpoint);
  }

  loadCheckpoint(id: string): Promise<Checkpoint | null> {
    return this.#checkpoints.load(id);
  }

  listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    return this.#checkpoints.list(sessionId);
  }

  deleteCheckpoint(id: string): Promise<boolean> {
    return this.#checkpoints.delete(id);
  }

  listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#listing.idleSince(before, limit);
  }

  subscribe(sessionId: string, wake: () => void): Promise<Subscription> {
    return this.#watchers.subscribe(sessionId, wake);
  }

  ping(): Promise<void> {
    return this.#handle.ping();
  }

  async close(): Promise<void> {
    this.#watchers.close();
    await this.#handle.close();
  }
}
