import { asSlice, nextSlice } from "../../internal/long-work.ts";
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

/** Few, as most readers of a log need only its last entries. */
const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 256;
/** How many characters are read before others have their turn: a database in this process answers at once. */
const SLICE_CHARACTERS = 256 * 1024;

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
    return (await asSlice(() => runLater(this.#reader.find(session, [entryId])))).get(entryId) ?? null;
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    const nodeAt = (seq: number) => runLater(this.#reader.settingsAt(session.segments, seq, false));
    return readSettings(last, nodeAt, { taken: true });
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead> {
    const { port, cache } = this.#parts;
    const limits = { ...options, now: this.#clock.now() };
    return asSlice(() =>
      this.#made(ask(port.locked((locked) => forkRows(new RowReader(locked, cache), sourceId, header, limits)))),
    );
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
    const pages = new PageReader(this.#parts.port, reverse);
    let left = limit;
    let size = PAGE_ENTRIES_FIRST;
    for (const part of parts) {
      let rest: Part | null = part;
      while (rest !== null && left > 0) {
        const page = await pages.read(rest, Math.min(size, left));
        // A session that was purged under its reader has nothing more to give.
        if (page.length === 0) return;
        left -= page.length;
        size = Math.min(PAGE_ENTRIES_MAX, size * 2);
        rest = without(rest, page.length, reverse);
        yield page;
      }
    }
  }

  #load(sessionId: string, deleted?: boolean): Promise<Session | null> {
    return runLater(this.#reader.load(sessionId, deleted));
  }
}

/**
 * Reads one page after the other. One that is large is read only when it may be: whoever waits for others must not hold it
 * meanwhile.
 */
class PageReader<Part extends LogRange, Session extends RowSession<Part>> {
  readonly #port: RowPort<Part, Session>;
  readonly #reverse: boolean;
  /** How many characters were read since others had their turn. */
  #read = 0;
  /** Whether a large page was read before: then this reading is known to be large. */
  #isLarge = false;

  constructor(port: RowPort<Part, Session>, reverse: boolean) {
    this.#port = port;
    this.#reverse = reverse;
  }

  async read(part: Part, count: number): Promise<readonly string[]> {
    const measured = this.#port.measure?.(part, count, this.#reverse) ?? { count, bytes: 0 };
    await this.#turnFor(measured.bytes);
    const page = await this.#port.page(part, measured.count, this.#reverse);
    const characters = page.reduce((sum, body) => sum + body.length, 0);
    if (this.#port.measure !== undefined) return page;
    if (this.#isLarge || characters <= SLICE_CHARACTERS) {
      this.#read += characters;
      return page;
    }
    return this.#readAgain(part, count, characters);
  }

  async #readAgain(part: Part, count: number, characters: number): Promise<readonly string[]> {
    await this.#turnFor(characters);
    return this.#port.page(part, count, this.#reverse);
  }

  async #turnFor(characters: number): Promise<void> {
    this.#read += characters;
    if (this.#read <= SLICE_CHARACTERS) return;
    this.#isLarge = true;
    await nextSlice(this.#read);
    this.#read = 0;
  }
}

function without<Part extends LogRange>(part: Part, count: number, reverse: boolean): Part | null {
  const { start, end } = part;
  if (count >= end - start) return null;
  return reverse ? { ...part, end: end - count } : { ...part, start: start + count };
}
