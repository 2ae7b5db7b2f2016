import type { BellCounts, Listening, ListenOptions, RingHandler, RingOptions, RunBell } from "./run-bell.ts";

/** The longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A bell for those who listen in this process; nobody else hears it. */
export function inProcessBell(): RunBell {
  return new InProcessBell();
}

/** A ring that waits, or that is being answered. */
interface Ring {
  readonly key: string;
  readonly sessionId: string;
  readonly runner: string;
  readonly priority: number;
}

/** Someone who listens, and how many rings they answer now. */
interface Listener {
  readonly runners: ReadonlySet<string>;
  readonly handler: RingHandler;
  readonly concurrency: number;
  readonly controller: AbortController;
  readonly answering: Set<Promise<void>>;
}

/** See `inProcessBell`. */
export class InProcessBell implements RunBell {
  /** In the order in which they are to be answered. */
  readonly #waiting: Ring[] = [];
  /** By key; with the ring that came meanwhile. */
  readonly #active = new Map<string, Ring | null>();
  readonly #later = new Map<string, NodeJS.Timeout>();
  readonly #listeners = new Set<Listener>();
  readonly #subscribers = new Map<string, Set<(data: Uint8Array) => void>>();

  async ring(sessionId: string, { runner, at, priority = 0 }: RingOptions): Promise<void> {
    const ring = { key: JSON.stringify([runner, sessionId]), sessionId, runner, priority };
    const delayMs = at === undefined ? 0 : at.getTime() - Date.now();
    if (delayMs > 0) this.#ringLater(ring, at as Date, delayMs);
    else this.#ringNow(ring);
  }

  async listen(
    runners: readonly string[],
    handler: RingHandler,
    { concurrency = 1 }: ListenOptions = {},
  ): Promise<Listening> {
    const listener: Listener = {
      runners: new Set(runners),
      handler,
      concurrency,
      controller: new AbortController(),
      answering: new Set(),
    };
    this.#listeners.add(listener);
    this.#answer();
    return {
      close: async () => {
        this.#listeners.delete(listener);
        listener.controller.abort();
        await Promise.all(listener.answering);
      },
    };
  }

  async counts(): Promise<BellCounts> {
    return { waiting: this.#waiting.length, active: this.#active.size, delayed: this.#later.size };
  }

  async publish(topic: string, data: Uint8Array): Promise<void> {
    for (const hear of this.#subscribers.get(topic) ?? []) hear(data);
  }

  async subscribe(topic: string, hear: (data: Uint8Array) => void): Promise<Listening> {
    const subscribers = this.#subscribers.get(topic) ?? new Set();
    this.#subscribers.set(topic, subscribers.add(hear));
    return {
      close: async () => {
        subscribers.delete(hear);
        if (subscribers.size === 0) this.#subscribers.delete(topic);
      },
    };
  }

  /** Nothing of it can fail by itself. */
  onError(): () => void {
    return () => {};
  }

  async close(): Promise<void> {
    for (const timer of this.#later.values()) clearTimeout(timer);
    this.#later.clear();
    this.#waiting.length = 0;
    this.#subscribers.clear();
  }

  #ringLater(ring: Ring, at: Date, delayMs: number): void {
    clearTimeout(this.#later.get(ring.key));
    const due = (): void => {
      this.#later.delete(ring.key);
      void this.ring(ring.sessionId, { ...ring, at });
    };
    this.#later.set(ring.key, setTimeout(due, Math.min(delayMs, TIMER_MS_MAX)).unref());
  }

  #ringNow(ring: Ring): void {
    if (this.#active.has(ring.key)) this.#active.set(ring.key, ring);
    else if (!this.#waiting.some(({ key }) => key === ring.key)) {
      const before = this.#waiting.findLastIndex(({ priority }) => priority <= ring.priority);
      this.#waiting.splice(before + 1, 0, ring);
      this.#answer();
    }
  }

  /** Gives out what waits, to those who have room for it. */
  #answer(): void {
    for (const listener of this.#listeners) {
      while (listener.answering.size < listener.concurrency) {
        const index = this.#waiting.findIndex(({ runner }) => listener.runners.has(runner));
        const [ring] = index < 0 ? [] : this.#waiting.splice(index, 1);
        if (ring === undefined) break;
        this.#begin(listener, ring);
      }
    }
  }

  #begin(listener: Listener, ring: Ring): void {
    this.#active.set(ring.key, null);
    const answered = (async () => listener.handler(ring.sessionId, listener.controller.signal))()
      .catch(() => {})
      .then(() => {
        const again = this.#active.get(ring.key) ?? null;
        this.#active.delete(ring.key);
        listener.answering.delete(answered);
        if (again !== null) this.#ringNow(again);
        this.#answer();
      });
    listener.answering.add(answered);
  }
}
