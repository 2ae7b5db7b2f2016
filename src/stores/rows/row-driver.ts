import { TimestampClock } from "../../internal/timestamp-clock.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { PathSummary, SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type {
  DriverForkOptions,
  DriverPurge,
  ListPosition,
  ReadRange,
  StoreDriver,
} from "../../session/store-driver.ts";
import type {
  AppendOptions,
  AppendResult,
  Checkpoint,
  SessionPage,
  SessionQuery,
  UndeleteOptions,
} from "../../session/store.ts";
import { type Asking, ask, type Reply, runLater } from "./asking.ts";
import { readPages } from "./read-pages.ts";
import { appendRows } from "./row-appender.ts";
import { forkRows, makeRows } from "./row-maker.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import type { LogRange } from "./segments.ts";
import type { SessionCache } from "./session-cache.ts";

/** How a store lists its sessions. */
export interface RowListing {
  /** One page, newest first. */
  list(query: SessionQuery, limit: number, after: ListPosition | null): Reply<SessionHead[]>;
  count(query: SessionQuery): Reply<number>;
  /** Open sessions that were last appended to before a time, the longest idle first. */
  idleSince(before: string, limit: number): Reply<SessionHead[]>;
}

/** How a store deletes sessions, brings them back, and purges them, sparing what forks build on. */
export type RowRemoval = Pick<StoreDriver, "delete" | "undelete" | "purge">;

/** How a store keeps checkpoints; those of a deleted session are hidden with it. */
export interface RowCheckpoints {
  save(checkpoint: Checkpoint): Promise<void>;
  load(id: string): Promise<Checkpoint | null>;
  list(sessionId: string): Promise<Checkpoint[]>;
  delete(id: string): Promise<boolean>;
}

/** What a store that keeps logs as rows brings to its driver. */
export interface RowParts<Part extends LogRange, Session extends RowSession<Part>> {
  readonly port: RowPort<Part, Session>;
  readonly cache: SessionCache<Session>;
  readonly clock: () => Date;
  readonly listing: RowListing;
  readonly removal: RowRemoval;
  readonly checkpoints: RowCheckpoints;
}

/** The part of a `StoreDriver` that is the same wherever a log is rows; what a store extends brings the rest. */
export abstract class RowDriver<Part extends LogRange, Session extends RowSession<Part>> {
  /** Set where the port answers at once, so that no append has to wait for another. */
  readonly appendsAtOnce?: true;
  readonly #parts: RowParts<Part, Session>;
  readonly #reader: RowReader<Part, Session>;
  readonly #clock: TimestampClock;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(parts: RowParts<Part, Session>) {
    this.#parts = parts;
    this.#reader = new RowReader(parts.port, parts.cache);
    this.#clock = new TimestampClock(parts.clock);
  }

  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    return this.#made(makeRows(this.#reader, header, drafts, { ...options, now: this.#clock.now() }));
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const work = (): Promise<AppendResult> =>
      runLater(appendRows(this.#reader, { sessionId, drafts, options, now: this.#clock.now() }));
    if (this.appendsAtOnce === true) return work();
    const before = this.#turns.get(sessionId);
    const appending = before === undefined ? work() : before.then(work);
    const end = (): void => {
      if (this.#turns.get(sessionId) === turn) this.#turns.delete(sessionId);
    };
    const turn = appending.then(end, end);
    this.#turns.set(sessionId, turn);
    return appending;
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return (await this.#load(sessionId))?.head ?? null;
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = await this.#load(sessionId, range.deleted);
    if (session === null) return;
    for await (const page of readPages(this.#parts.port, session, range))
      for (const body of page) yield JSON.parse(body) as Entry;
  }

  async readJson(sessionId: string, range: ReadRange, charactersMax: number): Promise<readonly string[]> {
    const session = await this.#load(sessionId, range.deleted);
    const texts: string[] = [];
    if (session === null) return texts;
    let characters = 0;
    for await (const page of readPages(this.#parts.port, session, range)) {
      for (const text of page) {
        texts.push(text);
        characters += text.length;
        if (characters > charactersMax) return texts;
      }
    }
    return texts;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const session = await this.#load(sessionId);
    return session === null ? null : runLater(this.#reader.findEntry(session, entryId));
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const session = await this.#load(sessionId);
    if (session === null) return null;
    return (await runLater(this.#reader.find(session, [entryId]))).get(entryId)?.path ?? null;
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    return readSettings(last, (seq) => runLater(this.#reader.settingsAt(session.segments, seq)));
  }

  async fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead> {
    const { port, cache } = this.#parts;
    const limits = { ...options, now: this.#clock.now() };
    return this.#made(ask(port.locked((locked) => forkRows(new RowReader(locked, cache), sourceId, header, limits))));
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: await this.#parts.listing.list(query, limit, after), damaged: [] };
  }

  async count(query: SessionQuery): Promise<number> {
    return this.#parts.listing.count(query);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#parts.listing.idleSince(before, limit);
  }

  delete(sessionId: string): Promise<boolean> {
    return this.#parts.removal.delete(sessionId);
  }

  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#parts.removal.undelete(sessionId, options);
  }

  purge(which: DriverPurge): Promise<number> {
    return this.#parts.removal.purge(which);
  }

  saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#parts.checkpoints.save(checkpoint);
  }

  loadCheckpoint(id: string): Promise<Checkpoint | null> {
    return this.#parts.checkpoints.load(id);
  }

  listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    return this.#parts.checkpoints.list(sessionId);
  }

  deleteCheckpoint(id: string): Promise<boolean> {
    return this.#parts.checkpoints.delete(id);
  }

  async #made(steps: Asking<Session>): Promise<SessionHead> {
    const session = await runLater(steps);
    this.#parts.cache.remember(session);
    return session.head;
  }

  #load(sessionId: string, deleted?: boolean): Promise<Session | null> {
    return runLater(this.#reader.load(sessionId, deleted));
  }
}
