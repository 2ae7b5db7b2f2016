import { setTimeout as wait } from "node:timers/promises";

/** So few steps hold nobody up for long. */
const STEPS_FREE = 200;
const STEPS_AT_ONCE = 10;
const REST_MS = 150;

/**
 * Keeps long work from holding up others: ten steps take about 2 ms of work on SQLite and 10 on PostgreSQL, and then others
 * have a multiple of that for themselves. Not by the clock: the time that a step takes is also that of others who have their turn.
 */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #steps = 0;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Rests, if enough steps were done since the last rest. @throws what the signal was aborted with. */
  async rest(): Promise<void> {
    this.#signal?.throwIfAborted();
    this.#steps += 1;
    if (this.#steps > STEPS_FREE && this.#steps % STEPS_AT_ONCE === 0) await wait(REST_MS);
  }
}
