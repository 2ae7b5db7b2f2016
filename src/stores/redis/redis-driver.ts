import type { SessionHead } from "../../session/fold.ts";
import type { DriverPurge, ListPosition, StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { Checkpoint, SessionPage, SessionQuery, StoreCapabilities, UndeleteOptions } from "../../session/store.ts";
import { RowDriver } from "../rows/row-driver.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { Checkpoints } from "./checkpoints.ts";
import { ForkReferences } from "./fork-references.ts";
import type { KeyNames } from "./key-names.ts";
import { LeaseScripts } from "./lease-scripts.ts";
import { Listing } from "./listing.ts";
import { Quota } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { RedisPort } from "./redis-port.ts";
import { Removal } from "./removal.ts";
import type { Segment } from "./segments.ts";
import { SessionIndex } from "./session-index.ts";
import { SessionLog } from "./session-log.ts";
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

  constructor(handle: RedisHandle, names: KeyNames, options: RedisDriverOptions) {
    const { ttlSeconds } = options;
    const clock = options.clock ?? (() => new Date());
    const cache = new SessionCache<StoredSession>();
    const log = new SessionLog(handle, names, cache);
    const index = new SessionIndex(handle, names, clock, ttlSeconds);
    const quota = new Quota(handle, names, index);
    const references = new ForkReferences(handle, names, log);
    const leases = new LeaseScripts(handle, names, options.clock);
    const maker = new SessionMaker({ handle, names, index, quota, references, ttlSeconds });
    super(new RedisPort({ handle, names, log, index, leases, maker, ttlSeconds }), cache, clock);
    const listing = new Listing({ handle, names, index, log, leases });
    this.leases = leases;
    this.#handle = handle;
    this.#listing = listing;
    this.#removal = new Removal({ handle, names, log, cache, index, quota, listing, references, clock });
    this.#checkpoints = new Checkpoints(handle, names, log);
    this.#watchers = new SessionWatchers(handle, names);
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

  purge(which: DriverPurge): Promise<number> {
    return this.#removal.purge(which);
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
