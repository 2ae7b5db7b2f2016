/** Runs that somebody reads, and those that everybody has left. */
export class LeftRuns {
  readonly #afterMs: number | null;
  readonly #runs = new Map<string, { readers: number; timer: NodeJS.Timeout | undefined }>();

  /** Without a time, nothing happens when everybody has left. */
  constructor(afterMs: number | null) {
    this.#afterMs = afterMs;
  }

  /**
   * One more reads a run. What comes back says that they do no longer, and whether they have left, or had read it all;
   * `stop` is called when the last one has left and nobody has come since.
   */
  join(key: string, stop: () => void): (hasLeft: boolean) => void {
    const afterMs = this.#afterMs;
    if (afterMs === null) return () => {};
    const run = this.#runs.get(key) ?? { readers: 0, timer: undefined };
    this.#runs.set(key, run);
    run.readers += 1;
    clearTimeout(run.timer);
    return (hasLeft) => {
      run.readers -= 1;
      if (run.readers > 0) return;
      const late = (): void => {
        this.#runs.delete(key);
        stop();
      };
      if (hasLeft) run.timer = setTimeout(late, afterMs).unref();
      else this.#runs.delete(key);
    };
  }
}
