import { setTimeout as wait } from "node:timers/promises";

/** What is done sooner than that holds nobody up for long. */
const SHORT_MS = 1000;
const WORK_MS = 10;
const REST_FACTOR = 9;
const REST_MS_MAX = 500;

/** Keeps long work from holding up others: after each bit of it, they have nine times as long for themselves. */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #workedMs = 0;
  #since = performance.now();

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Rests, if enough was done since the last rest. @throws what the signal was aborted with. */
  async rest(): Promise<void> {
    this.#signal?.throwIfAborted();
    const workedMs = performance.now() - this.#since;
    if (workedMs < WORK_MS) return;
    this.#workedMs += workedMs;
    if (this.#workedMs > SHORT_MS) await wait(Math.min(REST_MS_MAX, workedMs * REST_FACTOR));
    this.#since = performance.now();
  }
}
