/** A clock's time as `toISOString` writes it. Many appends fall into one millisecond, and writing a time down is not cheap. */
export class TimestampClock {
  readonly #clock: () => Date;
  #lastMs = Number.NaN;
  #lastTime = "";

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  now(): string {
    const now = this.#clock();
    const nowMs = now.getTime();
    if (nowMs !== this.#lastMs) this.#lastTime = now.toISOString();
    this.#lastMs = nowMs;
    return this.#lastTime;
  }
}
