import { setTimeout as wait } from "node:timers/promises";

/** This many steps run without a pause. */
const STEPS_FREE = 200;
const STEPS_AT_ONCE = 10;
const PAUSE_MS = 150;

/**
 * Throttles long work, so that other processes make progress: ten steps take about 2 ms on SQLite and 10 ms on PostgreSQL, and
 * are followed by a pause several times as long. Counts steps instead of measuring time, because the duration of a step includes
 * waiting for others.
 */
export class Throttle {
  readonly #signal: AbortSignal | undefined;
  #steps = 0;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Pauses if enough steps were done since the last pause. @throws the reason of the aborted signal. */
  async pause(): Promise<void> {
    this.#signal?.throwIfAborted();
    this.#steps += 1;
    if (this.#steps > STEPS_FREE && this.#steps % STEPS_AT_ONCE === 0) await wait(PAUSE_MS);
  }
}
