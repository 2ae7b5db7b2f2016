import { followAbort } from "../../../agent/follow-abort.ts";
import { HttpError } from "../http-error.ts";

const WAITING_MAX = 100;
const WAIT_MS = 60_000;

/** How someone waits for a place. */
export interface SlotRequest {
  /** Whether to wait for a place where none is free. */
  readonly wait: boolean;
  /** Ends the waiting; what it is aborted with is thrown. */
  readonly signal: AbortSignal;
}

/** The runs that a user has under way, and those that wait to begin. */
interface UserSlots {
  running: number;
  readonly waiting: (() => void)[];
}

/** How many runs each user has on this server; those that may wait begin in the order in which they came. */
export class RunSlots {
  readonly #max: number;
  readonly #users = new Map<string, UserSlots>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether a run of the user would have to wait. */
  isFull(userId: string): boolean {
    return (this.#users.get(userId)?.running ?? 0) >= this.#max;
  }

  /** Takes a place; whoever has it calls what comes back, once, when the run has ended. @throws {HttpError} `TOO_MANY_RUNS`. */
  async take(userId: string, { wait, signal }: SlotRequest): Promise<() => void> {
    signal.throwIfAborted();
    const slots = this.#users.get(userId) ?? { running: 0, waiting: [] };
    this.#users.set(userId, slots);
    if (slots.running < this.#max) slots.running++;
    else if (wait && slots.waiting.length < WAITING_MAX) await this.#waitIn(slots, signal);
    else throw this.#tooMany();
    return () => this.#leave(userId, slots);
  }

  #waitIn(slots: UserSlots, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        unfollow();
        const index = slots.waiting.indexOf(admit);
        if (index !== -1) slots.waiting.splice(index, 1);
        settle();
      };
      const admit = (): void => end(resolve);
      slots.waiting.push(admit);
      const timer = setTimeout(() => end(() => reject(this.#tooMany())), WAIT_MS);
      const unfollow = followAbort(signal, () => end(() => reject(signal.reason)));
    });
  }

  /** Gives the place to who waits longest; the count stays as it is then. */
  #leave(userId: string, slots: UserSlots): void {
    const next = slots.waiting[0];
    if (next !== undefined) next();
    else if (--slots.running === 0) this.#users.delete(userId);
  }

  #tooMany(): HttpError {
    return new HttpError(
      "TOO_MANY_RUNS",
      `A user may have ${this.#max} runs on this server at once; wait for one to end, or say ifBusy "enqueue".`,
      { headers: { "retry-after": "5" } },
    );
  }
}
