import { HttpError } from "../http-error.ts";

/** The runs that a user has on this server, and the sessions with one that waits to begin here. */
interface UserSlots {
  running: number;
  readonly waiting: Set<string>;
}

/** How many runs each user has on this server; what waits for a place is in the log, and only its session's id is here. */
export class RunSlots {
  readonly #max: number;
  readonly #users = new Map<string, UserSlots>();

  constructor(max: number) {
    this.#max = max;
  }

  /** @throws {HttpError} `TOO_MANY_RUNS` where a run of the user would have to wait. */
  check(userId: string): void {
    if ((this.#users.get(userId)?.running ?? 0) < this.#max) return;
    throw new HttpError(
      "TOO_MANY_RUNS",
      `A user may have ${this.#max} runs on this server at once; wait for one to end, or say ifBusy "enqueue".`,
      { headers: { "retry-after": "5" } },
    );
  }

  /** Takes a place for a run of a session; false where none is free, and `leave` names the session later. */
  take(userId: string, sessionId: string): boolean {
    const slots = this.#users.get(userId) ?? { running: 0, waiting: new Set() };
    this.#users.set(userId, slots);
    if (slots.running >= this.#max) {
      slots.waiting.add(sessionId);
      return false;
    }
    slots.running += 1;
    return true;
  }

  /** Gives a place back; the session that waits for one longest, or null. */
  leave(userId: string): string | null {
    const slots = this.#users.get(userId);
    if (slots === undefined) return null;
    slots.running -= 1;
    const [next = null] = slots.waiting;
    if (next !== null) slots.waiting.delete(next);
    else if (slots.running === 0) this.#users.delete(userId);
    return next;
  }
}
