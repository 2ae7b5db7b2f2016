import type { CheckedDraft } from "../../session/draft.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { PathSummary, SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type {
  DriverForkOptions,
  ListPosition,
  ReadRange,
  StoreDriver,
  Subscription,
} from "../../session/store-driver.ts";
import type {
  AggregateQuery,
  AggregateRow,
  AppendOptions,
  AppendResult,
  Checkpoint,
  SearchHit,
  SessionPage,
  SessionQuery,
  StoreCapabilities,
  UndeleteOptions,
} from "../../session/store.ts";
import { aggregate } from "./aggregate.ts";
import { Appender } from "./appender.ts";
import { CheckpointRows } from "./checkpoint-rows.ts";
import { EntryReader } from "./entry-reader.ts";
import { EntryWriter } from "./entry-writer.ts";
import { LeaseColumns } from "./lease-columns.ts";
import { Listing } from "./listing.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { Removal } from "./removal.ts";
import { SearchIndex } from "./search-index.ts";
import { SessionLog } from "./session-log.ts";
import { SessionMaker } from "./session-maker.ts";
import { SessionSearch } from "./session-search.ts";
import { Subscriptions } from "./subscriptions.ts";

/** How a driver is set up. */
export interface PostgresDriverOptions {
  /** Null for the system's clock, and the database's where leases are concerned. */
  readonly clock: (() => Date) | null;
  readonly watch: "push" | "poll";
}

/** Keeps sessions in a schema of a PostgreSQL database. */
export class PostgresDriver implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly leases: LeaseColumns;
  readonly subscribe?: (sessionId: string, wake: () => void) => Promise<Subscription>;
  readonly #handle: PostgresHandle;
  readonly #log: SessionLog;
  readonly #reader: EntryReader;
  readonly #appender: Appender;
  readonly #maker: SessionMaker;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: CheckpointRows;
  readonly #search: SessionSearch;
  readonly #subscriptions: Subscriptions;

  constructor(handle: PostgresHandle, options: PostgresDriverOptions) {
    const clock = options.clock ?? (() => new Date());
    const log = new SessionLog(handle);
    const writer = new EntryWriter(handle);
    const reader = new EntryReader(handle);
    const leases = new LeaseColumns(handle, options.clock);
    const listing = new Listing(handle, log, leases);
    const subscriptions = new Subscriptions(handle);
    this.capabilities = capabilitiesOf(options.watch);
    this.leases = leases;
    this.#handle = handle;
    this.#log = log;
    this.#reader = reader;
    this.#listing = listing;
    this.#appender = new Appender(handle, { log, writer, leases, clock });
    this.#maker = new SessionMaker(handle, log, writer, clock);
    this.#removal = new Removal(handle, log, clock);
    this.#checkpoints = new CheckpointRows(handle);
    this.#search = new SessionSearch(handle, { log, reader, listing, index: new SearchIndex(handle) });
    this.#subscriptions = subscriptions;
    if (options.watch === "push") this.subscribe = (sessionId, wake) => subscriptions.subscribe(sessionId, wake);
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

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const sessions = await this.#log.loadAll(sessionIds);
    return sessionIds.map((id) => sessions.get(id)?.head ?? null);
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = await this.#log.load(sessionId);
    if (session !== null) for await (const page of this.#reader.pages(session, range)) yield* page;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const session = await this.#log.load(sessionId);
    return session === null ? null : this.#log.findEntry(session, entryId);
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const session = await this.#log.load(sessionId);
    return session === null ? null : this.#log.findPath(session, entryId);
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

  search(terms: readonly SearchTerm[], { limit = PAGE_ITEMS_MAX, ...query }: SessionQuery): Promise<SearchHit[]> {
    return this.#search.search(terms, query, limit);
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

  aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return aggregate(this.#handle, query);
  }

  async ping(): Promise<void> {
    await this.#handle.write(`SELECT version FROM ${this.#handle.schema}.skein_schema`);
  }

  async close(): Promise<void> {
    await this.#subscriptions.close();
    await this.#handle.close();
  }
}

function capabilitiesOf(watch: "push" | "poll"): StoreCapabilities {
  return {
    durable: true,
    shared: true,
    forkByReference: true,
    search: "index",
    watch,
    lease: "shared",
    aggregate: "native",
  };
}
