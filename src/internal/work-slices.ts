import { setImmediate as nextTurn } from "node:timers/promises";

const SLICE_MS = 10;

/** Divides long work on the main thread into slices of about 10 ms, between which everything else has its turn. */
export class WorkSlices {
  #startedMs = performance.now();

  /** Waits for the next turn of the event loop once the slice is used up; call it between small steps of the work. */
  async pause(): Promise<void> {
    if (performance.now() - this.#startedMs < SLICE_MS) return;
    await nextTurn();
    this.#startedMs = performance.now();
  }
}
