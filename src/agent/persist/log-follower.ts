import type { Entry, EntryOf } from "../../session/log/entry.ts";
import { isOwn } from "../../session/log/fold.ts";
import type { SessionStore } from "../../session/store.ts";

/** A run that ends sooner never subscribes, because subscribing takes a large share of a short run. */
const SUBSCRIBE_AFTER_MS = 250;
const POLL_MS = 1_000;

/** The entries that other writers may append for a run in progress. */
export type RunMessage = EntryOf<"cancel" | "queued" | "approval">;

/**
 * Follows the log of a session from a position on: processes each entry once and in order, whether it is pushed, polled
 * or passed in.
 */
export class LogFollower {
  readonly store: SessionStore;
  readonly sessionId: string;
  readonly #onEntry: (entry: Entry) => void;
  #next: number;

  constructor(store: SessionStore, sessionId: string, from: number, onEntry: (entry: Entry) => void) {
    this.store = store;
    this.sessionId = sessionId;
    this.#next = from;
    this.#onEntry = onEntry;
  }

  /** The position of the next entry: all before it were processed. */
  get next(): number {
    return this.#next;
  }

  /** Processes an entry, unless it already was. The caller passes in all entries from `next` on. */
  take(entry: Entry): void {
    if (entry.seq < this.#next) return;
    this.#next = entry.seq + 1;
    this.#onEntry(entry);
  }

  /** Reads the new entries, or those of them before a position. */
  async poll(before?: number): Promise<void> {
    const range = { after: this.#next - 1, ...(before === undefined ? {} : { before }) };
    for await (const entry of this.store.read(this.sessionId, range)) this.take(entry);
  }

  /** Subscribes to appends of others; returns a function that unsubscribes. */
  subscribe(): () => void {
    return followers.add(this);
  }
}

/** Whether an entry is addressed to a run. */
export function isAddressedTo(runId: string, entry: Entry, header: Parameters<typeof isOwn>[0]): entry is RunMessage {
  const said = entry.type === "cancel" || entry.type === "queued" || entry.type === "approval";
  return said && entry.runId === runId && isOwn(header, entry, entry.seq);
}

/**
 * The followers of this process. A store that supports it pushes entries to each follower; otherwise all followers are
 * polled once a second.
 */
class Followers {
  readonly #all = new Set<LogFollower>();
  readonly #polled = new Set<LogFollower>();
  readonly #pollingStores = new Set<SessionStore>();
  #timer: NodeJS.Timeout | null = null;

  /** Adds a follower; returns a function that removes it. */
  add(follower: LogFollower): () => void {
    this.#all.add(follower);
    // Created only when needed: creating and aborting a controller takes a large share of a short run.
    let subscription: AbortController | null = null;
    const timer = setTimeout(() => {
      subscription = new AbortController();
      void this.#watch(follower, subscription.signal);
    }, SUBSCRIBE_AFTER_MS).unref();
    return () => {
      clearTimeout(timer);
      subscription?.abort();
      this.#all.delete(follower);
      this.#stopPolling(follower);
    };
  }

  async pollNow(store: SessionStore, sessionId: string): Promise<void> {
    const behind = [...this.#all].filter((follower) => follower.sessionId === sessionId && follower.store === store);
    // After an error, the store is polled again a second later.
    await Promise.all(behind.map((follower) => follower.poll().catch(() => {})));
  }

  async #watch(follower: LogFollower, signal: AbortSignal): Promise<void> {
    const { store, sessionId } = follower;
    if (store.capabilities.watch === "push") {
      try {
        for await (const entry of store.watch(sessionId, { after: follower.next - 1, signal })) follower.take(entry);
      } catch {
        // A watch that ends with an error is replaced by polling.
      }
    }
    if (!signal.aborted) this.#startPolling(follower);
  }

  #startPolling(follower: LogFollower): void {
    this.#polled.add(follower);
    this.#timer ??= setInterval(() => this.#pollAll(), POLL_MS).unref();
  }

  #stopPolling(follower: LogFollower): void {
    if (!this.#polled.delete(follower) || this.#polled.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #pollAll(): void {
    for (const store of new Set([...this.#polled].map((follower) => follower.store))) {
      if (!this.#pollingStores.has(store)) void this.#pollStore(store);
    }
  }

  async #pollStore(store: SessionStore): Promise<void> {
    this.#pollingStores.add(store);
    const polled = [...this.#polled].filter((follower) => follower.store === store);
    try {
      const heads = await store.heads(polled.map(({ sessionId }) => sessionId));
      const behind = polled.filter((follower, index) => (heads[index]?.version ?? 0) > follower.next);
      await Promise.all(behind.map((follower) => follower.poll()));
    } catch {
      // The store is polled again a second later; a run that cannot write to it fails on its own.
    } finally {
      this.#pollingStores.delete(store);
    }
  }
}

const followers = new Followers();

/** Makes the followers of this process read a session now, because its log just got an entry for them. */
export function pollFollowers(store: SessionStore, sessionId: string): Promise<void> {
  return followers.pollNow(store, sessionId);
}
