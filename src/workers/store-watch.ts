import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { SessionStore } from "../session/store.ts";

/** The shortest and the longest time between two questions, and for an answer. */
const ASK_MS = [250, 5000] as const;

/** Told when a store can no longer be reached, and when it can again. */
export interface StoreWatchHandlers {
  lost(): void;
  back(): void;
}

/**
 * Knows whether a store can be reached, by asking it from time to time. A store that does not answer within a sixth of a
 * lease is taken for away: who has runs must let go of them before their leases end.
 */
export class StoreWatch {
  readonly #store: Pick<SessionStore, "ping">;
  readonly #handlers: StoreWatchHandlers;
  readonly #askMs: number;
  readonly #closed = new AbortController();
  #checking: Promise<boolean> | null = null;
  #away = defer();

  constructor(store: Pick<SessionStore, "ping">, leaseMs: number, handlers: StoreWatchHandlers) {
    this.#store = store;
    this.#handlers = handlers;
    this.#askMs = Math.min(Math.max(leaseMs / 6, ASK_MS[0]), ASK_MS[1]);
  }

  /** Whether the store was away when it was last asked. */
  get isAway(): boolean {
    return this.#away.done;
  }

  start(): void {
    void this.#watch();
  }

  close(): void {
    this.#closed.abort();
  }

  /** Resolves with the work, or with `"away"` as soon as the store is: the work goes on then, and its failure is nobody's. */
  whileThere<T>(work: Promise<T>): Promise<T | "away"> {
    work.catch(() => {});
    return Promise.race([this.#away.promise, work]);
  }

  /** Asks the store now; whether it answers. */
  check(): Promise<boolean> {
    this.#checking ??= this.#answers().then((answers) => {
      this.#checking = null;
      if (answers === !this.isAway || this.#closed.signal.aborted) return answers;
      if (answers) this.#away = defer();
      else this.#away.resolve();
      this.#handlers[answers ? "back" : "lost"]();
      return answers;
    });
    return this.#checking;
  }

  async #watch(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      await this.check();
      await pause(this.#askMs, undefined, { ref: false, signal: this.#closed.signal }).catch(() => {});
    }
  }

  async #answers(): Promise<boolean> {
    let answered: boolean | null = null;
    const asked = this.#store.ping().then(
      () => (answered = true),
      () => (answered = false),
    );
    const late = pause(this.#askMs, null, { ref: false });
    await Promise.race([asked, late]);
    // In a process that was busy, or frozen, an answer may have come with the end of the time.
    for (let turns = 0; answered === null && turns < 2; turns++) await turn();
    return answered === true;
  }
}

/** A promise that is resolved from outside. */
function defer(): { readonly promise: Promise<"away">; readonly done: boolean; resolve(): void } {
  let [resolve, done] = [(_: "away"): void => {}, false];
  const promise = new Promise<"away">((settle) => {
    resolve = settle;
  });
  return {
    promise,
    get done() {
      return done;
    },
    resolve: () => {
      done = true;
      resolve("away");
    },
  };
}
