import { setTimeout as wait } from "node:timers/promises";

/** So few steps hold nobody up for long. */
const STEPS_FREE = 200;
const WORK_MS = 5;
/** With eight, others notice less than a tenth, and 10,000 sessions take minutes. */
const RESTS = 8;

/** Keeps long work from holding up others: they have eight times as long for themselves as it takes. */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #stepsLeft = STEPS_FREE;
  #startedAt = 0;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Rests, if enough was done since the last rest. @throws what the signal was aborted with. */
  async rest(): Promise<void> {
    this.#signal?.throwIfAborted();
    if (this.#stepsLeft > 0) {
      this.#stepsLeft -= 1;
      this.#startedAt = performance.now();
      return;
    }
    const workedMs = performance.now() - this.#startedAt;
    if (workedMs < WORK_MS) return;
    await wait(RESTS * workedMs);
    this.#startedAt = performance.now();
  }
}
