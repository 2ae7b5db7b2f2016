import { setImmediate as nextTurn } from "node:timers/promises";

const SLICE_MS = 10;

/** Divides long work on the main thread into slices of about 10 ms, and yields to the event loop between them. */
export class WorkSlices {
  #startedMs = performance.now();

  /** Yields to the event loop if the current slice has taken 10 ms. Call it between small steps of the work. */
  async pause(): Promise<void> {
    if (performance.now() - this.#startedMs < SLICE_MS) return;
    await nextTurn();
    this.#startedMs = performance.now();
  }
}
