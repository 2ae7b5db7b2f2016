import { checkCount } from "../stores/complete/valid-arguments.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import type { SessionStore } from "../session/store.ts";
import type { Expiry } from "./expiry.ts";
import type { ReportFailure } from "./report-failure.ts";

const BATCH_SESSIONS = 100;
const SWEEP_SESSIONS_DEFAULT = 10_000;

/** How much one pass does. */
export interface SweepOptions {
  /** At most so many sessions (default 10,000). */
  readonly limit?: number;
}

/** What a sweeper works with. */
export interface SweeperInit {
  readonly store: SessionStore;
  readonly expiry: Expiry;
  readonly report: ReportFailure;
  /** The time between two passes. */
  readonly intervalSeconds: number;
}

/**
 * Puts the expiry of idle sessions on record, once or on a timer.
 *
 * - Any number of sweepers may work on one store: each session is expired by one of them.
 * - A session that cannot be expired is reported, and the pass goes on without it.
 * - The timer keeps no process alive, and passes of one sweeper never overlap.
 */
export class Sweeper {
  readonly #init: SweeperInit;
  #timer: NodeJS.Timeout | null = null;
  #passing: Promise<void> | null = null;

  constructor(init: SweeperInit) {
    this.#init = init;
  }

  /** One pass; how many sessions it expired. */
  async sweep({ limit = SWEEP_SESSIONS_DEFAULT }: SweepOptions = {}): Promise<number> {
    checkCount(limit, "limit", 1);
    const { store, expiry, report } = this.#init;
    const cutoff = expiry.cutoff();
    if (cutoff === null) return 0;
    const left = new Set<string>();
    let [expired, tried] = [0, 0];
    while (tried < limit) {
      // Those that were left as they are may still be the longest idle, so that they come first again.
      const most = Math.min(left.size + Math.min(BATCH_SESSIONS, limit - tried), PAGE_ITEMS_MAX);
      const heads = await store.listExpired(cutoff, most);
      const fresh = heads.filter(({ header }) => !left.has(header.id));
      if (fresh.length === 0) break;
      for (const head of fresh) {
        tried += 1;
        try {
          if (await expiry.record(head)) expired += 1;
          else left.add(head.header.id);
        } catch (error) {
          left.add(head.header.id);
          report(error, { during: "sweep", sessionId: head.header.id });
        }
      }
    }
    return expired;
  }

  /** Sweeps on a timer from now on; does nothing when it already does. */
  start(): void {
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => {
      this.#passing ??= this.#pass();
    }, this.#init.intervalSeconds * 1000);
    this.#timer.unref();
  }

  /** Ends the timer; resolves when no pass is under way. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#passing;
  }

  async #pass(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.#init.report(error, { during: "sweep", sessionId: null });
    } finally {
      this.#passing = null;
    }
  }
}
