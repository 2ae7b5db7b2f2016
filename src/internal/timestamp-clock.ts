/** A clock's time in ISO format. The text is cached for one millisecond, because formatting costs and many appends share it. */
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
