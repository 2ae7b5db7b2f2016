import { SessionError } from "../session/errors.ts";

/** The longest delay of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Stops a run at its deadline. */
export class RunDeadline {
  readonly #deadline: string | null;
  readonly #stop: (error: SessionError) => void;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(deadline: string | undefined, stop: (error: SessionError) => void) {
    this.#deadline = deadline ?? null;
    this.#stop = stop;
  }

  /** Whether the deadline has stopped the run. */
  get isOver(): boolean {
    return this.#over;
  }

  /**
   * Starts the timer. A deadline that is already over takes effect at `check`, because a run without a session could
   * not record it.
   */
  start(): void {
    if (this.#leftMs <= 0 || this.#leftMs === Number.POSITIVE_INFINITY) return;
    const again = (): void => (this.#leftMs > 0 ? this.start() : this.check());
    this.#timer = setTimeout(again, Math.min(this.#leftMs, TIMER_MS_MAX)).unref();
  }

  /** Stops the run if its deadline is over. */
  check(): void {
    if (this.#over || this.#leftMs > 0) return;
    this.#over = true;
    this.#stop(new SessionError("DEADLINE", `The run did not end by its deadline ${this.#deadline} and was stopped.`));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  get #leftMs(): number {
    return this.#deadline === null ? Number.POSITIVE_INFINITY : Date.parse(this.#deadline) - Date.now();
  }
}
