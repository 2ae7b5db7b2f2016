import type { StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { RowDriver } from "../rows/row-driver.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { LeaseScripts } from "./lease-scripts.ts";
import { RedisBlobs } from "./redis-blobs.ts";
import { RedisLedger } from "./redis-ledger.ts";
import { Listing } from "./listing.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { RedisEraser } from "./redis-eraser.ts";
import { RedisPort } from "./redis-port.ts";
import type { RedisStoreOptions } from "./redis-store.ts";
import { Removal } from "./removal.ts";
import type { Segment, StoredSession } from "./stored-session.ts";
import { SessionWatchers } from "./session-watchers.ts";

/** Keeps sessions in Redis. Each write to a session is one script, and therefore atomic. */
export class RedisDriver extends RowDriver<Segment, StoredSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities = {
    durable: true,
    shared: true,
    forkByReference: true,
    search: "scan",
    watch: "push",
    lease: "shared",
  };
  readonly leases: LeaseScripts;
  readonly eraser: RedisEraser;
  readonly ledger: RedisLedger;
  readonly blobs: RedisBlobs;
  readonly #handle: RedisHandle;
  readonly #watchers: SessionWatchers;

  constructor(handle: RedisHandle, options: RedisStoreOptions) {
    const port = new RedisPort(handle, options);
    const { cache, clock } = port;
    const parts = { listing: new Listing(port), removal: new Removal(port), checkpoints: new Checkpoints(port) };
    super({ port, cache, clock, ...parts });
    this.leases = port.leases;
    this.eraser = new RedisEraser(port, parts.checkpoints);
    this.ledger = new RedisLedger(handle);
    this.blobs = new RedisBlobs(handle, clock);
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
