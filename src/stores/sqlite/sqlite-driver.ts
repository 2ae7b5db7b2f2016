import type { CheckedDraft } from "../../session/draft.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { PathSummary, SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type { DriverForkOptions, ListPosition, ReadRange, StoreDriver } from "../../session/store-driver.ts";
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
import { LeaseRows } from "./lease-rows.ts";
import { Listing } from "./listing.ts";
import { Removal } from "./removal.ts";
import { SearchIndex } from "./search-index.ts";
import { SessionLog } from "./session-log.ts";
import { SessionMaker } from "./session-maker.ts";
import { SessionSearch } from "./session-search.ts";
import { Settling } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

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
export class SqliteDriver implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly appendsAtOnce = true;
  readonly leases: LeaseRows;
  readonly search?: (terms: readonly SearchTerm[], query: SessionQuery) => Promise<SearchHit[]>;
  readonly #handle: SqliteHandle;
  readonly #ownsHandle: boolean;
  readonly #log: SessionLog;
  readonly #reader: EntryReader;
  readonly #appender: Appender;
  readonly #maker: SessionMaker;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: CheckpointRows;

  constructor(handle: SqliteHandle, options: SqliteDriverOptions) {
    const { clock, file, searchIndex, ownsHandle } = options;
    this.capabilities = capabilitiesOf(file, handle.place);
    this.#handle = handle;
    this.#ownsHandle = ownsHandle;
    const log = new SessionLog(handle);
    const writer = new EntryWriter(handle);
    const reader = new EntryReader(handle);
    const settling = new Settling(handle);
    const index = searchIndex ? new SearchIndex(handle, settling) : null;
    this.leases = new LeaseRows(handle, clock);
    const listing = new Listing(handle, { log, settling, leases: this.leases });
    this.#log = log;
    this.#reader = reader;
    this.#listing = listing;
    this.#appender = new Appender(handle, log, writer, this.leases, clock);
    this.#maker = new SessionMaker(handle, log, writer, clock);
    this.#removal = new Removal(handle, { log, settling, search: index, clock });
    this.#checkpoints = new CheckpointRows(handle);
    if (index !== null) {
      const search = new SessionSearch(handle, { log, reader, listing, index });
      this.search = (terms, { limit = PAGE_ITEMS_MAX, ...query }) => search.search(terms, query, limit);
    }
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    return this.#maker.create(header, drafts, options);
  }

  async append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    return this.#appender.append(sessionId, drafts, options);
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return this.#log.load(sessionId)?.head ?? null;
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    // One statement for all, as each takes and lets go of a lock on the file, which costs more than what it reads.
    const sessions = this.#log.loadAll(sessionIds);
    return sessionIds.map((id) => sessions.get(id)?.head ?? null);
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = this.#log.load(sessionId);
    if (session !== null) for (const page of this.#reader.pages(session, range)) yield* page;
  }

  async readJson(sessionId: string, range: ReadRange, charactersMax: number): Promise<readonly string[]> {
    const session = this.#log.load(sessionId);
    if (session === null) return [];
    const texts: string[] = [];
    let characters = 0;
    for (const page of this.#reader.bodies(session, range)) {
      for (const text of page) {
        texts.push(text);
        characters += text.length;
        if (characters > charactersMax) return texts;
      }
    }
    return texts;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const session = this.#log.load(sessionId);
    return session === null ? null : this.#log.findEntry(session, entryId);
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const session = this.#log.load(sessionId);
    return session === null ? null : (this.#log.find(session, entryId)?.path ?? null);
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = this.#log.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    return readSettings(last, async (seq) => this.#log.settingsAt(session, seq));
  }

  async fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead> {
    return this.#maker.fork(sourceId, header, options);
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: this.#listing.list(query, limit, after), damaged: [] };
  }

  async count(query: SessionQuery): Promise<number> {
    return this.#listing.count(query);
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#removal.delete(sessionId);
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#removal.undelete(sessionId, options);
  }

  async purge(before: string): Promise<number> {
    return this.#removal.purge(before);
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    this.#checkpoints.save(checkpoint);
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    return this.#checkpoints.load(id);
  }

  async listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    return this.#checkpoints.list(sessionId);
  }

  async deleteCheckpoint(id: string): Promise<boolean> {
    return this.#checkpoints.delete(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#listing.idleSince(before, limit);
  }

  async aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return aggregate(this.#handle, query);
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
