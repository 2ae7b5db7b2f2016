import { PagedItems } from "../../internal/paged-items.ts";
import { TimestampClock } from "../../internal/timestamp-clock.ts";
import type { StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type {
  CheckpointTable,
  DriverPurge,
  ReadRange,
  SessionListing,
  StoreDriver,
} from "../../session/store-driver.ts";
import type { AppendOptions, AppendResult, ForkOptions, UndeleteOptions } from "../../session/store.ts";
import { type Asking, ask, runLater } from "./asking.ts";
import { appendRows } from "./row-appender.ts";
import { forkRows, makeRows } from "./row-maker.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import { clipSegments, type LogRange } from "./segments.ts";
import type { SessionCache } from "./session-cache.ts";

/** Few, as nobody knows how large they are. */
const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 256;
const PAGE_CHARACTERS = 1024 * 1024;

/** How a store deletes sessions, brings them back, and purges them, sparing what forks build on. */
export type RowRemoval = Pick<StoreDriver, "delete" | "undelete" | "purge">;

/** What a store that keeps logs as rows brings to its driver. */
export interface RowParts<Part extends LogRange, Session extends RowSession<Part>> {
  readonly port: RowPort<Part, Session>;
  readonly cache: SessionCache<Session>;
  readonly clock: () => Date;
  readonly listing: SessionListing;
  readonly removal: RowRemoval;
  readonly checkpoints: CheckpointTable;
}

/** The part of a `StoreDriver` that is the same wherever a log is rows; what a store extends brings the rest. */
export abstract class RowDriver<Part extends LogRange, Session extends RowSession<Part>> {
  /** Set where the port answers at once, so that no append has to wait for another. */
  readonly appendsAtOnce?: true;
  readonly checkpoints: CheckpointTable;
  readonly listing: SessionListing;
  readonly #parts: RowParts<Part, Session>;
  readonly #reader: RowReader<Part, Session>;
  readonly #clock: TimestampClock;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(parts: RowParts<Part, Session>) {
    this.#parts = parts;
    this.checkpoints = parts.checkpoints;
    this.listing = parts.listing;
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

  read(sessionId: string, range: ReadRange): AsyncIterable<Entry> {
    return new PagedItems(this.#pages(sessionId, range), (body) => JSON.parse(body) as Entry);
  }

  readTexts(sessionId: string, range: ReadRange): AsyncIterable<string> {
    return new PagedItems(this.#pages(sessionId, range), (body) => body);
  }

  async find(sessionId: string, entryId: string): Promise<StoredEntry | null> {
    const session = await this.#load(sessionId);
    if (session === null) return null;
    return (await runLater(this.#reader.find(session, [entryId]))).get(entryId) ?? null;
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    return readSettings(last, (seq) => runLater(this.#reader.settingsAt(session.segments, seq)));
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead> {
    const { port, cache } = this.#parts;
    const limits = { ...options, now: this.#clock.now() };
    return this.#made(ask(port.locked((locked) => forkRows(new RowReader(locked, cache), sourceId, header, limits))));
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

  async #made(steps: Asking<Session>): Promise<SessionHead> {
    const session = await runLater(steps);
    this.#parts.cache.remember(session);
    return session.head;
  }

  /** The entries of a range as JSON, read a page at a time: neither a long log nor large entries must fit in memory. */
  async *#pages(sessionId: string, range: ReadRange): AsyncGenerator<readonly string[]> {
    const session = await this.#load(sessionId, range.deleted);
    if (session === null) return;
    const { after, before, limit, reverse } = range;
    const parts = clipSegments(session.segments, after + 1, Math.min(before, session.head.version));
    if (reverse) parts.reverse();
    let left = limit;
    let size = PAGE_ENTRIES_FIRST;
    for (const part of parts) {
      let rest: Part | null = part;
      while (rest !== null && left > 0) {
        const page: readonly string[] = await this.#parts.port.page(rest, Math.min(size, left), reverse);
        // A session that was purged under its reader has nothing more to give.
        if (page.length === 0) return;
        yield page;
        left -= page.length;
        size = nextSize(size, page);
        rest = without(rest, page.length, reverse);
      }
    }
  }

  #load(sessionId: string, deleted?: boolean): Promise<Session | null> {
    return runLater(this.#reader.load(sessionId, deleted));
  }
}

function nextSize(size: number, page: readonly string[]): number {
  const characters = page.reduce((sum, body) => sum + body.length, 0);
  if (characters > PAGE_CHARACTERS) return Math.max(1, Math.floor(size / 4));
  return Math.min(PAGE_ENTRIES_MAX, size * 2);
}

function without<Part extends LogRange>(part: Part, count: number, reverse: boolean): Part | null {
  const { start, end } = part;
  if (count >= end - start) return null;
  return reverse ? { ...part, end: end - count } : { ...part, start: start + count };
}
