import type { Entry } from "../../session/entry.ts";
import type { SessionStore } from "../../session/store.ts";

/** Runs that are over sooner pay nothing for being told. */
const LISTEN_AFTER_MS = 250;
const POLL_MS = 1_000;

/** Someone in this process who is told what others append to a session. */
export interface Listener {
  readonly store: SessionStore;
  readonly sessionId: string;
  /** Everything before this position was heard. */
  readonly heard: number;
  /** Takes the next entry; one that was heard before is nothing new. */
  hear(entry: Entry): void;
  /** Reads what is new. */
  look(): Promise<void>;
}

/** Tells the runs of this process what others append: pushed where the store can, else by one look a second for all. */
class RunEars {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #polled = new Set<Listener>();
  readonly #asking = new Set<SessionStore>();
  #timer: NodeJS.Timeout | null = null;

  /** The answer ends it. */
  join(listener: Listener): () => void {
    const { sessionId } = listener;
    const known = this.#listeners.get(sessionId) ?? new Set();
    this.#listeners.set(sessionId, known.add(listener));
    const watching = new AbortController();
    const timer = setTimeout(() => void this.#listen(listener, watching.signal), LISTEN_AFTER_MS);
    timer.unref();
    return () => {
      clearTimeout(timer);
      watching.abort();
      this.#stopPolling(listener);
      if (known.delete(listener) && known.size === 0) this.#listeners.delete(sessionId);
    };
  }

  async lookNow(store: SessionStore, sessionId: string): Promise<void> {
    const told = [...(this.#listeners.get(sessionId) ?? [])].filter((listener) => listener.store === store);
    // A store that does not answer is asked again a second later.
    await Promise.all(told.map((listener) => listener.look().catch(() => {})));
  }

  async #listen(listener: Listener, signal: AbortSignal): Promise<void> {
    const { store, sessionId } = listener;
    if (store.capabilities.watch === "push") {
      try {
        for await (const entry of store.watch(sessionId, { after: listener.heard - 1, signal })) listener.hear(entry);
      } catch {
        // A watch that breaks off is replaced by looking.
      }
    }
    if (!signal.aborted) this.#poll(listener);
  }

  #poll(listener: Listener): void {
    this.#polled.add(listener);
    this.#timer ??= setInterval(() => this.#lookAtAll(), POLL_MS).unref();
  }

  #stopPolling(listener: Listener): void {
    if (!this.#polled.delete(listener) || this.#polled.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #lookAtAll(): void {
    for (const store of new Set([...this.#polled].map((listener) => listener.store))) {
      if (!this.#asking.has(store)) void this.#lookIn(store);
    }
  }

  async #lookIn(store: SessionStore): Promise<void> {
    this.#asking.add(store);
    const listeners = [...this.#polled].filter((listener) => listener.store === store);
    try {
      const heads = await store.heads(listeners.map(({ sessionId }) => sessionId));
      const behind = listeners.filter((listener, index) => (heads[index]?.version ?? 0) > listener.heard);
      await Promise.all(behind.map((listener) => listener.look()));
    } catch {
      // The store is asked again a second later; a run that cannot write to it fails by itself.
    } finally {
      this.#asking.delete(store);
    }
  }
}

const ears = new RunEars();

/** Tells a listener what others append to its session, until the answer is called. */
export function listenTo(listener: Listener): () => void {
  return ears.join(listener);
}

/** Lets the runs of this process look at a session at once, for whoever has just appended something for them. */
export function hearNow(store: SessionStore, sessionId: string): Promise<void> {
  return ears.lookNow(store, sessionId);
}
