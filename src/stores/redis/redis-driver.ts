import type { CheckedDraft } from "../../session/draft.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { PathSummary, SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type {
  DriverForkOptions,
  ListPosition,
  ReadRange,
  StoreDriver,
  Subscription,
} from "../../session/store-driver.ts";
import type {
  AppendOptions,
  AppendResult,
  Checkpoint,
  SessionPage,
  SessionQuery,
  StoreCapabilities,
  UndeleteOptions,
} from "../../session/store.ts";
import { Appender } from "./appender.ts";
import { Checkpoints } from "./checkpoints.ts";
import { readPages } from "./entry-reader.ts";
import { ForkReferences } from "./fork-references.ts";
import type { KeyNames } from "./key-names.ts";
import { LeaseScripts } from "./lease-scripts.ts";
import { Listing } from "./listing.ts";
import { Quota } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { Removal } from "./removal.ts";
import { SessionIndex } from "./session-index.ts";
import { SessionLog } from "./session-log.ts";
import { SessionMaker } from "./session-maker.ts";
import { SessionWatchers } from "./session-watchers.ts";

/** How a driver is set up. */
export interface RedisDriverOptions {
  /** What time it is; without it, the system's clock, and for leases the server's. */
  readonly clock: (() => Date) | undefined;
  /** After how long without an append a session runs out, as a backstop. */
  readonly ttlSeconds: number | undefined;
}

/** Keeps sessions in Redis. What is written of a session is written by one script. */
export class RedisDriver implements StoreDriver {
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
  readonly #log: SessionLog;
  readonly #appender: Appender;
  readonly #maker: SessionMaker;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: Checkpoints;
  readonly #watchers: SessionWatchers;

  constructor(handle: RedisHandle, names: KeyNames, options: RedisDriverOptions) {
    const { ttlSeconds } = options;
    const clock = options.clock ?? (() => new Date());
    const log = new SessionLog(handle, names);
    const index = new SessionIndex(handle, names, clock, ttlSeconds);
    const quota = new Quota(handle, names, index);
    const references = new ForkReferences(handle, names, log);
    this.leases = new LeaseScripts(handle, names, options.clock);
    const listing = new Listing({ handle, names, index, log, leases: this.leases });
    this.#handle = handle;
    this.#log = log;
    this.#listing = listing;
    this.#appender = new Appender({ handle, names, log, index, leases: this.leases, clock, ttlSeconds });
    this.#maker = new SessionMaker({ handle, names, log, index, quota, references, clock, ttlSeconds });
    this.#removal = new Removal({ handle, names, log, index, quota, listing, references, clock });
    this.#checkpoints = new Checkpoints(handle, names, log);
    this.#watchers = new SessionWatchers(handle, names);
  }

  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    return this.#maker.create(header, drafts, options);
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    return this.#appender.append(sessionId, drafts, options);
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return (await this.#log.load(sessionId))?.head ?? null;
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = await this.#log.load(sessionId);
    if (session !== null) for await (const page of readPages(this.#log, session, range)) yield* page;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const session = await this.#log.load(sessionId);
    return session === null ? null : this.#log.findEntry(session, entryId);
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const session = await this.#log.load(sessionId);
    return session === null ? null : ((await this.#log.find(session, [entryId])).get(entryId)?.path ?? null);
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#log.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    return readSettings(last, (seq) => this.#log.settingsAt(session.segments, seq));
  }

  fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead> {
    return this.#maker.fork(sourceId, header, options);
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
