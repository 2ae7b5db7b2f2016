import type { Entry } from "../../../session/log/entry.ts";
import { SessionNotFoundError } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { HttpError } from "../http-error.ts";
import { type HeavyRequest, HeavyWork } from "../heavy-work.ts";
import { FRAME_CHARACTERS_MAX, type FrameSource } from "./event-streams.ts";

const RECENT_FRAMES_MAX = 64;
const RECENT_CHARACTERS_MAX = 256 * 1024;
/** How many readers that are behind may hold large entries at the same time. */
const BEHIND_AT_ONCE = 4;

/** The watched sessions: all clients of a session share one watch of the store. */
export class SessionWatches {
  readonly #store: SessionStore;
  readonly #report: (error: unknown) => void;
  readonly #watches = new Map<string, SharedWatch>();
  readonly #behind = new HeavyWork({ heavyAtOnce: BEHIND_AT_ONCE });

  constructor(store: SessionStore, report: (error: unknown) => void) {
    this.#store = store;
    this.#report = report;
  }

  /** The number of watched sessions. */
  get size(): number {
    return this.#watches.size;
  }

  /**
   * Follows the entries of a session after a position (default: from now on). The first frame has the position, so that
   * a client that loses its connection before the first entry can resume there.
   *
   * @throws {HttpError} `EVENT_ID_UNKNOWN` for a position beyond the end of the log.
   */
  join(head: SessionHead, after: number | null): FrameSource {
    const end = head.version - 1;
    if (after !== null && after > end) {
      throw new HttpError("EVENT_ID_UNKNOWN", `The session's log ends at ${end}; watch it from there or before.`);
    }
    const reader = this.read(head, after ?? end);
    let told = false;
    return {
      attach: reader.attach,
      take: async () => {
        if (told) return (await reader.take())?.map(({ frame }) => frame).join("") ?? null;
        told = true;
        return `id: ${after ?? end}\n\n`;
      },
    };
  }

  /**
   * Follows the entries of a session after a position. A reader that is behind the recent entries reads from the store,
   * a few readers at a time: what they have read is kept in memory until it is sent.
   */
  read({ header: { id: sessionId, userId }, version }: SessionHead, after: number): EntryReader {
    let position = after;
    let watch: SharedWatch | null = null;
    const behind = this.#behind.open(userId ?? "", null);
    return {
      take: async () => {
        behind.pause();
        const taken = (await watch?.take(position, behind)) ?? null;
        position = taken?.at(-1)?.entry.seq ?? position;
        return taken;
      },
      attach: (wake) => {
        const shared = this.#watchOf(sessionId, version - 1);
        watch = shared;
        shared.wakes.add(wake);
        return () => {
          shared.wakes.delete(wake);
          behind[Symbol.dispose]();
          if (shared.wakes.size === 0) this.#end(sessionId, shared);
        };
      },
    };
  }

  #watchOf(sessionId: string, end: number): SharedWatch {
    const known = this.#watches.get(sessionId);
    if (known !== undefined) return known;
    const watch = new SharedWatch(this.#store, sessionId, end);
    this.#watches.set(sessionId, watch);
    void watch.follow().then(
      () => this.#end(sessionId, watch),
      (error: unknown) => {
        // If the session was deleted in the meantime, the watch ends without an error.
        if (!(error instanceof SessionNotFoundError)) this.#report(error);
        this.#end(sessionId, watch);
      },
    );
    return watch;
  }

  #end(sessionId: string, watch: SharedWatch): void {
    if (this.#watches.get(sessionId) === watch) this.#watches.delete(sessionId);
    watch.end();
  }
}

/** An entry with its serialized event frame. */
export interface WatchedEntry {
  readonly entry: Entry;
  readonly frame: string;
}

/** Reads a session's entries in pieces. */
export interface EntryReader extends Pick<FrameSource, "attach"> {
  /**
   * Returns the available entries, up to about `FRAME_CHARACTERS_MAX` characters; none if there are none, null at the
   * end.
   */
  take(): Promise<readonly WatchedEntry[] | null>;
}

/** A watch of the store with the latest entries; readers that are further behind read from the store. */
class SharedWatch {
  readonly wakes: Set<() => void> = new Set();
  readonly #store: SessionStore;
  readonly #sessionId: string;
  readonly #controller = new AbortController();
  #recent: WatchedEntry[] = [];
  #characters = 0;
  /** The position of the oldest recent entry, or of the next one. */
  #first: number;

  constructor(store: SessionStore, sessionId: string, after: number) {
    this.#store = store;
    this.#sessionId = sessionId;
    this.#first = after + 1;
  }

  async follow(): Promise<void> {
    const { signal } = this.#controller;
    for await (const entry of this.#store.watch(this.#sessionId, { after: this.#first - 1, signal })) {
      this.#add(watchedOf(entry));
      for (const wake of this.wakes) wake();
    }
  }

  end(): void {
    this.#controller.abort();
    for (const wake of this.wakes) wake();
  }

  /** Returns the entries after a position; null at the end of the watch. */
  take(
    position: number,
    behind: HeavyRequest,
  ): readonly WatchedEntry[] | null | Promise<readonly WatchedEntry[] | null> {
    const from = position + 1 - this.#first;
    if (from < 0) return this.#read(position, behind);
    if (from >= this.#recent.length) return this.#controller.signal.aborted ? null : [];
    let [to, characters] = [from, 0];
    while (to < this.#recent.length && characters < FRAME_CHARACTERS_MAX) {
      characters += this.#recent[to++]?.frame.length ?? 0;
    }
    return this.#recent.slice(from, to);
  }

  async #read(position: number, behind: HeavyRequest): Promise<readonly WatchedEntry[] | null> {
    await behind.begin();
    const taken: WatchedEntry[] = [];
    let characters = 0;
    for await (const entry of this.#store.read(this.#sessionId, { after: position, limit: RECENT_FRAMES_MAX })) {
      const watched = watchedOf(entry);
      taken.push(watched);
      characters += watched.frame.length;
      if (characters >= FRAME_CHARACTERS_MAX) break;
    }
    if (characters <= RECENT_CHARACTERS_MAX) behind.pause();
    // Earlier entries are no longer readable: the session was deleted.
    return taken.length === 0 ? null : taken;
  }

  #add(watched: WatchedEntry): void {
    this.#recent.push(watched);
    this.#characters += watched.frame.length;
    while (this.#recent.length > RECENT_FRAMES_MAX || this.#characters > RECENT_CHARACTERS_MAX) {
      this.#characters -= this.#recent.shift()?.frame.length ?? 0;
      this.#first += 1;
    }
  }
}

function watchedOf(entry: Entry): WatchedEntry {
  return { entry, frame: `id: ${entry.seq}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n` };
}
