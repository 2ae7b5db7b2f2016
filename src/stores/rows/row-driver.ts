import { freezeDeep } from "../../internal/freeze-deep.ts";
import { asSlice, nextSlice } from "../../internal/long-work.ts";
import { PagedItems } from "../../internal/paged-items.ts";
import { TimestampClock } from "../../internal/timestamp-clock.ts";
import { NOTHING_FOUND, planFirst, type StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
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
import type { MakeLimits } from "../complete/session-limits.ts";
import { type Coroutine, runAsync, waitFor } from "./coroutine.ts";
import { appendRows } from "./row-appender.ts";
import { encodePlan } from "./row-encoding.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import { clipSegments, type LogRange } from "./segments.ts";
import type { SessionCache } from "./session-cache.ts";

/** The first page is small, as most readers need only the last entries of a log. */
const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 256;
/** How many characters to read before yielding to the event loop: a database in this process is synchronous. */
const SLICE_CHARACTERS = 256 * 1024;

/** Deletes, undeletes and purges sessions. A purge keeps the entries that forks begin with. */
export type RowRemoval = Pick<StoreDriver, "delete" | "undelete" | "purge">;

/** The options of a `RowDriver`, for a store that keeps logs as rows. */
export interface RowParts<Part extends LogRange, Session extends RowSession<Part>> {
  readonly port: RowPort<Part, Session>;
  readonly cache: SessionCache<Session>;
  readonly clock: () => Date;
  readonly listing: SessionListing;
  readonly removal: RowRemoval;
  readonly checkpoints: CheckpointTable;
}

/** The part of a `StoreDriver` that all stores with rows share. A store extends it and adds leases, `ping` and `close`. */
export abstract class RowDriver<Part extends LogRange, Session extends RowSession<Part>> {
  /** True if the port is synchronous; then appends to a session need no queue. */
  readonly appendsAtOnce?: true;
  readonly checkpoints: CheckpointTable;
  readonly listing: SessionListing;
  readonly #parts: RowParts<Part, Session>;
  readonly #reader: RowReader<Part, Session>;
  readonly #clock: TimestampClock;
  /** The last queued append of each session with one under way. */
  readonly #queues = new Map<string, Promise<unknown>>();

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
    return this.#made(createSession(this.#reader, header, drafts, { ...options, now: this.#clock.now() }));
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const work = (): Promise<AppendResult> =>
      runAsync(appendRows(this.#reader, { sessionId, drafts, options, now: this.#clock.now() }));
    if (this.appendsAtOnce === true) return work();
    const before = this.#queues.get(sessionId);
    const appending = before === undefined ? work() : before.then(work);
    const end = (): void => {
      if (this.#queues.get(sessionId) === ended) this.#queues.delete(sessionId);
    };
    const ended = appending.then(end, end);
    this.#queues.set(sessionId, ended);
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
    return (await asSlice(() => runAsync(this.#reader.find(session, [entryId])))).get(entryId) ?? null;
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    const nodeAt = (seq: number) => runAsync(this.#reader.settingsAt(session.segments, seq, false));
    return readSettings(last, nodeAt, { taken: true });
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead> {
    const { port, cache } = this.#parts;
    const limits = { ...options, now: this.#clock.now() };
    return asSlice(() =>
      this.#made(waitFor(port.locked((locked) => forkSession(new RowReader(locked, cache), sourceId, header, limits)))),
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

  async #made(steps: Coroutine<Session>): Promise<SessionHead> {
    const session = await runAsync(steps);
    this.#parts.cache.remember(session);
    return session.head;
  }

  /** The entries of a range as JSON, read a page at a time so that a long log or large entries need not fit in memory. */
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
        // The session was purged while it was read.
        if (page.length === 0) return;
        left -= page.length;
        size = Math.min(PAGE_ENTRIES_MAX, size * 2);
        rest = without(rest, page.length, reverse);
        yield page;
      }
    }
  }

  #load(sessionId: string, deleted?: boolean): Promise<Session | null> {
    return runAsync(this.#reader.load(sessionId, deleted));
  }
}

/** Creates a session with its first entries. */
function* createSession<Part extends LogRange, Session extends RowSession<Part>>(
  { port }: RowReader<Part, Session>,
  header: SessionHeader,
  drafts: readonly CheckedDraft[],
  { now, ...limits }: MakeLimits & { readonly now: string },
): Coroutine<Session> {
  const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
  const plan = planFirst(empty, drafts, now);
  const { rows, located } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
  return yield* waitFor(port.locked((locked) => waitFor(locked.make({ located, rows, origin: [] }, limits))));
}

/** Creates a fork, whose log refers to rows of the source's log. Called inside `locked`. */
function* forkSession<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  sourceId: string,
  header: SessionHeader,
  { at, now, ...limits }: ForkOptions & { readonly now: string },
): Coroutine<Session> {
  const source = yield* reader.load(sourceId);
  if (source === null) throw new SessionNotFoundError(sourceId);
  const [row] = typeof at === "string" ? yield* waitFor(reader.port.findRows(source, [at])) : [];
  if (row === undefined && typeof at === "string") throw new UnknownEntryError(sourceId, at);
  const version = at === undefined ? source.head.version : row === undefined ? 0 : row.seq + 1;
  const { last, ...origin } = yield* reader.headAt(source.segments, header, version);
  const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId: last?.id ?? null, version }));
  const head = freezeDeep<SessionHead>({ ...origin.head, header: forked, openRuns: [], updatedAt: now });
  const inherited = clipSegments(source.segments, 0, version);
  return yield* waitFor(reader.port.make({ located: { ...origin, head }, rows: [], origin: inherited }, limits));
}

/**
 * Reads one page after the other, and yields to the event loop after `SLICE_CHARACTERS`. It yields before it reads a large
 * page: many readers that wait at the same time must not each hold one in memory.
 */
class PageReader<Part extends LogRange, Session extends RowSession<Part>> {
  readonly #port: RowPort<Part, Session>;
  readonly #reverse: boolean;
  /** How many characters were read since the last yield to the event loop. */
  #characters = 0;
  /** True once it has yielded for a large page: later pages are then kept as read, not read a second time. */
  #isLarge = false;

  constructor(port: RowPort<Part, Session>, reverse: boolean) {
    this.#port = port;
    this.#reverse = reverse;
  }

  async read(part: Part, count: number): Promise<readonly string[]> {
    const measured = this.#port.measure?.(part, count, this.#reverse) ?? { count, bytes: 0 };
    await this.#yieldBefore(measured.bytes);
    const page = await this.#port.page(part, measured.count, this.#reverse);
    const characters = page.reduce((sum, body) => sum + body.length, 0);
    if (this.#port.measure !== undefined) return page;
    if (this.#isLarge || characters <= SLICE_CHARACTERS) {
      this.#characters += characters;
      return page;
    }
    return this.#readAgain(part, count, characters);
  }

  /** Drops a page that turned out to be large, and reads it again after yielding. */
  async #readAgain(part: Part, count: number, characters: number): Promise<readonly string[]> {
    await this.#yieldBefore(characters);
    return this.#port.page(part, count, this.#reverse);
  }

  async #yieldBefore(characters: number): Promise<void> {
    this.#characters += characters;
    if (this.#characters <= SLICE_CHARACTERS) return;
    this.#isLarge = true;
    await nextSlice(this.#characters);
    this.#characters = 0;
  }
}

function without<Part extends LogRange>(part: Part, count: number, reverse: boolean): Part | null {
  const { start, end } = part;
  if (count >= end - start) return null;
  return reverse ? { ...part, end: end - count } : { ...part, start: start + count };
}
