import { SessionError } from "../session/errors.ts";

/** The longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Stops a run when its time is over. */
export class RunDeadline {
  readonly #deadline: string | null;
  readonly #stop: (error: SessionError) => void;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(deadline: string | undefined, stop: (error: SessionError) => void) {
    this.#deadline = deadline ?? null;
    this.#stop = stop;
  }

  /** Whether it has stopped the run. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Begins to wait. What is over already stops nothing before `check`: a run that has no session could not say so there. */
  start(): void {
    if (this.#leftMs <= 0 || this.#leftMs === Number.POSITIVE_INFINITY) return;
    const again = (): void => (this.#leftMs > 0 ? this.start() : this.check());
    this.#timer = setTimeout(again, Math.min(this.#leftMs, TIMER_MS_MAX)).unref();
  }

  /** Stops the run if its time is over. */
  check(): void {
    if (this.#over || this.#leftMs > 0) return;
    this.#over = true;
    this.#stop(new SessionError("DEADLINE", `The run was not done by ${this.#deadline}, and was stopped.`));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  get #leftMs(): number {
    return this.#deadline === null ? Number.POSITIVE_INFINITY : Date.parse(this.#deadline) - Date.now();
  }
}
