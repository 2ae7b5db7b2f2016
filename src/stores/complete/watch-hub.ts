import { type Entry, entryCharacters } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { WatchOptions } from "../../session/store.ts";
import { readRange } from "./valid-arguments.ts";
import { Wakeup } from "../../internal/wakeup.ts";

const BATCH_ENTRIES = 64;
const BATCH_CHARACTERS = 1024 * 1024;
const POLL_MS_MIN = 25;
const POLL_MS_MAX = 250;
/** A notification may be lost with its connection, so that whoever is told looks by itself as well, now and then. */
const SUBSCRIBED_POLL_MS = 5000;

type WatchedDriver = Pick<StoreDriver, "capabilities" | "head" | "read" | "subscribe">;

/** Where a watch begins. */
interface Beginning {
  readonly end: number;
  readonly subscription: Subscription | null;
}

interface Watcher {
  readonly wakeup: Wakeup;
  /** Null once it is over. */
  beginning: Promise<Beginning> | null;
}

/** Keeps the watchers of a store, and wakes those of a session when it has grown. */
export class WatchHub {
  readonly #driver: WatchedDriver;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(driver: WatchedDriver) {
    this.#driver = driver;
  }

  /** Tells the watchers of a session to look again. */
  wake(sessionId: string): void {
    if (this.#watchers.size === 0) return;
    for (const { wakeup } of this.#watchers.get(sessionId) ?? []) wakeup.wake();
  }

  /**
   * Resolves when every watcher that was started has found its starting point; null when none is about to. An append
   * waits for it, since otherwise an entry appended right after a watch began could count as one from before.
   */
  started(sessionId: string): Promise<unknown> | null {
    if (this.#watchers.size === 0) return null;
    const starting = [...(this.#watchers.get(sessionId) ?? [])].flatMap(({ beginning }) => beginning ?? []);
    return starting.length === 0 ? null : Promise.allSettled(starting);
  }

  /** Ends every watch. */
  close(): void {
    for (const watchers of this.#watchers.values()) for (const { wakeup } of watchers) wakeup.stop();
  }

  /** The entries of a session from a position on, as they come. `begin` is called with the first step. */
  watch(sessionId: string, options: WatchOptions, begin: () => void = () => {}): AsyncIterator<Entry> {
    const wakeup = new Wakeup();
    const entries = this.#follow(sessionId, options, wakeup, begin);
    return {
      next: () => entries.next(),
      return: () => {
        // A generator would keep this waiting behind a `next` that may never come.
        wakeup.stop();
        return entries.return(undefined);
      },
    };
  }

  async *#follow(
    sessionId: string,
    options: WatchOptions,
    wakeup: Wakeup,
    begin: () => void,
  ): AsyncGenerator<Entry, undefined> {
    begin();
    const { after, signal } = options;
    if (signal?.aborted) return;
    const stop = (): void => wakeup.stop();
    signal?.addEventListener("abort", stop, { once: true });
    const beginning = this.#begin(sessionId, wakeup);
    const watcher: Watcher = { wakeup, beginning };
    const watchers = this.#watchers.get(sessionId) ?? new Set();
    this.#watchers.set(sessionId, watchers.add(watcher));
    let subscription: Subscription | null = null;
    try {
      const begun = await beginning;
      watcher.beginning = null;
      subscription = begun.subscription;
      let position = after ?? begun.end;
      let pollMs = POLL_MS_MIN;
      while (!wakeup.stopped) {
        wakeup.reset();
        const entries = await this.#next(sessionId, position, wakeup);
        if (entries === null) return;
        for (const entry of entries) {
          if (wakeup.stopped) return;
          position = entry.seq;
          yield entry;
        }
        if (entries.length > 0) pollMs = POLL_MS_MIN;
        else if (await wakeup.wait(this.#waitMs(pollMs))) pollMs = POLL_MS_MIN;
        else pollMs = Math.min(POLL_MS_MAX, pollMs * 2);
      }
    } catch (error) {
      // Closing the store while it reads for a watcher is the end of the watch, not a failure of it.
      if (!wakeup.stopped) throw error;
    } finally {
      subscription?.close();
      signal?.removeEventListener("abort", stop);
      watchers.delete(watcher);
      if (watchers.size === 0) this.#watchers.delete(sessionId);
    }
  }

  #waitMs(pollMs: number): number | null {
    // Other processes do not wake us, so what they append is found by looking.
    if (!this.#driver.capabilities.shared) return null;
    return this.#driver.subscribe === undefined ? pollMs : SUBSCRIBED_POLL_MS;
  }

  /**
   * Finds where a watch begins: with the call, so that an append which comes right after it waits until the end of the log
   * is known and the watcher will hear of what follows.
   */
  async #begin(sessionId: string, wakeup: Wakeup): Promise<Beginning> {
    const wake = (): void => wakeup.wake();
    // Without a subscription the head is asked for at once, in the call that began the watch.
    const subscription = this.#driver.subscribe === undefined ? null : await this.#driver.subscribe(sessionId, wake);
    if (wakeup.stopped) return { end: -1, subscription };
    try {
      const head = await this.#driver.head(sessionId);
      if (head === null) throw new SessionNotFoundError(sessionId);
      return { end: head.version - 1, subscription };
    } catch (error) {
      subscription?.close();
      throw error;
    }
  }

  /** What came after a position, at most a batch of it; null when the session or the watch has ended. */
  async #next(sessionId: string, after: number, wakeup: Wakeup): Promise<Entry[] | null> {
    const head = await this.#driver.head(sessionId);
    if (head === null || wakeup.stopped) return null;
    const entries: Entry[] = [];
    if (head.version <= after + 1) return entries;
    // The batch is taken whole, so that a slow reader holds no cursor of the store open.
    const range = readRange({ after, limit: BATCH_ENTRIES });
    let characters = 0;
    for await (const entry of this.#driver.read(sessionId, range)) {
      entries.push(entry);
      characters += entryCharacters(entry);
      if (characters > BATCH_CHARACTERS) break;
    }
    return entries;
  }
}
