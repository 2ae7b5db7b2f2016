/** Runs that somebody reads, and those that everybody has left. */
export class LeftRuns {
  readonly #afterMs: number | null;
  readonly #readers = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** Without a time, nothing happens when everybody has left. */
  constructor(afterMs: number | null) {
    this.#afterMs = afterMs;
  }

  /** One more reads a run. What comes back says that they have left; `stop` is called when nobody has come since. */
  join(key: string, stop: () => void): () => void {
    if (this.#afterMs === null) return () => {};
    this.#readers.set(key, (this.#readers.get(key) ?? 0) + 1);
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    return () => {
      const others = (this.#readers.get(key) ?? 1) - 1;
      if (others > 0) this.#readers.set(key, others);
      else this.#leave(key, stop);
    };
  }

  #leave(key: string, stop: () => void): void {
    this.#readers.delete(key);
    const late = (): void => {
      this.#timers.delete(key);
      stop();
    };
    this.#timers.set(key, setTimeout(late, this.#afterMs ?? 0).unref());
  }
}
