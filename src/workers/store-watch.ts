import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { SessionStore } from "../session/store.ts";

/** The shortest and the longest interval between checks, and the time limit for one. */
const ASK_MS = [250, 5000] as const;

/** Called when the store becomes unreachable, and when it is reachable again. */
export interface StoreWatchHandlers {
  lost(): void;
  back(): void;
}

/**
 * Checks periodically whether a store is reachable. A store that does not respond within a sixth of a lease counts as
 * unreachable: a worker must release its runs before their leases end.
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

  /** Whether the store was unreachable at the last check. */
  get isAway(): boolean {
    return this.#away.done;
  }

  start(): void {
    void this.#watch();
  }

  close(): void {
    this.#closed.abort();
  }

  /**
   * Resolves with the result of the work, or with `"away"` when the store becomes unreachable; the work then continues,
   * and its error is ignored.
   */
  whileThere<T>(work: Promise<T>): Promise<T | "away"> {
    work.catch(() => {});
    return Promise.race([this.#away.promise, work]);
  }

  /** Checks the store now; returns whether it is reachable. */
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
    // If the process was busy or frozen, a response may have arrived together with the timeout.
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
