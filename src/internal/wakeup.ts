/** Lets one waiter sleep until it is woken, stopped, or a time has passed. */
export class Wakeup {
  #woken = false;
  #stopped = false;
  #resolve: ((woken: boolean) => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Whether the waiter is to end. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Wakes the waiter; when it does not wait just now, its next wait is over at once. */
  wake(): void {
    this.#woken = true;
    this.#settle(true);
  }

  /** Wakes the waiter for good. */
  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** Forgets earlier calls of `wake`; call it before looking, so that one that comes meanwhile counts. */
  reset(): void {
    this.#woken = this.#stopped;
  }

  /** Resolves to true once woken, to false after `timeoutMs`; null waits without a limit. */
  wait(timeoutMs: number | null): Promise<boolean> {
    if (this.#woken) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (timeoutMs === null) return;
      this.#timer = setTimeout(() => this.#settle(false), timeoutMs);
      this.#timer.unref();
    });
  }

  #settle(woken: boolean): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#resolve?.(woken);
    this.#resolve = null;
  }
}
