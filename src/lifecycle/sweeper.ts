import { checkCount } from "../stores/complete/valid-arguments.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import type { SessionStore } from "../session/store.ts";
import type { Expiry } from "./expiry.ts";
import type { ReportFailure } from "./report-failure.ts";

const BATCH_SESSIONS = 100;
const SWEEP_SESSIONS_DEFAULT = 10_000;

/** Options of one pass. */
export interface SweepOptions {
  /** The most sessions of a pass (default 10,000). */
  readonly limit?: number;
}

/** The parts of a `Sweeper`. */
export interface SweeperInit {
  readonly store: SessionStore;
  readonly expiry: Expiry;
  readonly report: ReportFailure;
  /** The time between two passes. */
  readonly intervalSeconds: number;
}

/**
 * Records the expiry of idle sessions, once or on a timer.
 *
 * - Any number of sweepers can work on one store: each session is expired by one of them.
 * - A session that cannot be expired is reported, and the pass continues without it.
 * - The timer does not keep the process alive, and passes of one sweeper never overlap.
 */
export class Sweeper {
  readonly #init: SweeperInit;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;

  constructor(init: SweeperInit) {
    this.#init = init;
  }

  /** Runs one pass; returns how many sessions it expired. */
  async sweep({ limit = SWEEP_SESSIONS_DEFAULT }: SweepOptions = {}): Promise<number> {
    checkCount(limit, "limit", 1);
    const { store, expiry, report } = this.#init;
    const cutoff = expiry.cutoff();
    if (cutoff === null) return 0;
    const skipped = new Set<string>();
    let [expired, tried] = [0, 0];
    while (tried < limit) {
      // Skipped sessions may still be the longest idle ones, and then are listed first again.
      const most = Math.min(skipped.size + Math.min(BATCH_SESSIONS, limit - tried), PAGE_ITEMS_MAX);
      const heads = await store.listExpired(cutoff, most);
      const fresh = heads.filter(({ header }) => !skipped.has(header.id));
      if (fresh.length === 0) break;
      for (const head of fresh) {
        tried += 1;
        try {
          if (await expiry.record(head)) expired += 1;
          else skipped.add(head.header.id);
        } catch (error) {
          skipped.add(head.header.id);
          report(error, { during: "sweep", sessionId: head.header.id });
        }
      }
    }
    return expired;
  }

  /** Starts to sweep on a timer; does nothing if it is started. */
  start(): void {
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => {
      this.#running ??= this.#pass();
    }, this.#init.intervalSeconds * 1000);
    this.#timer.unref();
  }

  /** Stops the timer; resolves when no pass is running. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#running;
  }

  async #pass(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.#init.report(error, { during: "sweep", sessionId: null });
    } finally {
      this.#running = null;
    }
  }
}
