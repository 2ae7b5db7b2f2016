import type { StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { RowDriver } from "../rows/row-driver.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { Checkpoints } from "./checkpoints.ts";
import { ForkReferences } from "./fork-references.ts";
import { LeaseScripts } from "./lease-scripts.ts";
import { Listing } from "./listing.ts";
import { Quota } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { RedisEraser } from "./redis-eraser.ts";
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
  readonly eraser: RedisEraser;
  readonly #handle: RedisHandle;
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
    const listing = new Listing(handle, { index, port, leases });
    const removal = new Removal(handle, { port, cache, index, quota, listing, references, clock });
    super({ port, cache, clock, listing, removal, checkpoints: new Checkpoints(handle, port) });
    this.leases = leases;
    this.eraser = new RedisEraser(handle, { port, cache, index, references });
    this.#handle = handle;
    this.#watchers = new SessionWatchers(handle);
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
