import { type Entry, entryCharacters } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { WatchOptions } from "../../session/store.ts";
import { readRange } from "./valid-arguments.ts";

const BATCH_ENTRIES = 64;
const BATCH_CHARACTERS = 1024 * 1024;
const POLL_MS_MIN = 25;
const POLL_MS_MAX = 250;
/** Watchers with a subscription poll too, at this interval, because a notification may be lost with its connection. */
const SUBSCRIBED_POLL_MS = 5000;

type WatchedDriver = Pick<StoreDriver, "capabilities" | "head" | "read" | "subscribe">;

/** The state after the start of a watch: the last entry before it, and its subscription. */
interface WatchStart {
  readonly end: number;
  readonly subscription: Subscription | null;
}

interface Watcher {
  readonly wakeup: Wakeup;
  /** Null after the start has been found. */
  start: Promise<WatchStart> | null;
}

/** The watchers of a store. `wake` notifies those of one session that it has new entries. */
export class WatchHub {
  readonly #driver: WatchedDriver;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(driver: WatchedDriver) {
    this.#driver = driver;
  }

  /** Makes the watchers of a session read again. */
  wake(sessionId: string): void {
    if (this.#watchers.size === 0) return;
    for (const { wakeup } of this.#watchers.get(sessionId) ?? []) wakeup.wake();
  }

  /**
   * Resolves when every watcher that was started has found its starting point; null if none is still looking for it. An
   * append waits for this: otherwise an entry that is appended right after the call of `watch` could be missed.
   */
  started(sessionId: string): Promise<unknown> | null {
    if (this.#watchers.size === 0) return null;
    const starting = [...(this.#watchers.get(sessionId) ?? [])].flatMap(({ start }) => start ?? []);
    return starting.length === 0 ? null : Promise.allSettled(starting);
  }

  /** Ends every watch. */
  close(): void {
    for (const watchers of this.#watchers.values()) for (const { wakeup } of watchers) wakeup.stop();
  }

  /** Yields the entries of a session after a position, and waits for new ones. `begin` is called by the first `next`. */
  watch(sessionId: string, options: WatchOptions, begin: () => void = () => {}): AsyncIterator<Entry> {
    const wakeup = new Wakeup();
    const entries = this.#follow(sessionId, options, wakeup, begin);
    return {
      next: () => entries.next(),
      return: () => {
        // Stop the wait first: `return` of a generator waits for a pending `next`, which may never settle.
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
    const start = this.#findStart(sessionId, wakeup);
    const watcher: Watcher = { wakeup, start };
    const watchers = this.#watchers.get(sessionId) ?? new Set();
    this.#watchers.set(sessionId, watchers.add(watcher));
    let subscription: Subscription | null = null;
    try {
      const started = await start;
      watcher.start = null;
      subscription = started.subscription;
      let position = after ?? started.end;
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
      // If the watch was stopped, as by closing the store, the error of the pending read is ignored.
      if (!wakeup.stopped) throw error;
    } finally {
      subscription?.close();
      signal?.removeEventListener("abort", stop);
      watchers.delete(watcher);
      if (watchers.size === 0) this.#watchers.delete(sessionId);
    }
  }

  #waitMs(pollMs: number): number | null {
    // In a store that no other process can append to, every append wakes the watchers, so they need not poll.
    if (!this.#driver.capabilities.shared) return null;
    return this.#driver.subscribe === undefined ? pollMs : SUBSCRIBED_POLL_MS;
  }

  /**
   * Finds the end of the log at the time of the call, and subscribes. Appends wait until this is done (`started`), so that
   * the watcher gets every entry that is appended after the call.
   */
  async #findStart(sessionId: string, wakeup: Wakeup): Promise<WatchStart> {
    const wake = (): void => wakeup.wake();
    // Without a subscription the head is requested synchronously, before anything is awaited.
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

  /** The entries after a position, at most one batch; null if the session was deleted or the watch has ended. */
  async #next(sessionId: string, after: number, wakeup: Wakeup): Promise<Entry[] | null> {
    const head = await this.#driver.head(sessionId);
    if (head === null || wakeup.stopped) return null;
    const entries: Entry[] = [];
    if (head.version <= after + 1) return entries;
    // Read the whole batch before any of it is yielded, so that a slow consumer keeps no database cursor open.
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

/** A condition for one waiter: it sleeps until it is woken or stopped, or until a timeout. */
class Wakeup {
  #woken = false;
  #stopped = false;
  #resolve: ((woken: boolean) => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Whether `stop` was called. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Wakes the waiter. If it is not waiting now, its next `wait` resolves immediately. */
  wake(): void {
    this.#woken = true;
    this.#settle(true);
  }

  /** Wakes the waiter, and makes every later `wait` resolve immediately. */
  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** Forgets earlier calls of `wake`. Call it before reading, so that a `wake` during the read is not lost. */
  reset(): void {
    this.#woken = this.#stopped;
  }

  /** Resolves to true when woken, or to false after `timeoutMs`; null means no timeout. */
  wait(timeoutMs: number | null): Promise<boolean> {
    if (this.#woken) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (timeoutMs === null) return;
      this.#timer = setTimeout(() => this.#settle(false), timeoutMs);
      this.#timer.unref();
    });
  }

  #settle(woken: boolean): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#resolve?.(woken);
    this.#resolve = null;
  }
}
