/** The runs of a user here, and the sessions that wait for a slot. */
interface OneUser {
  running: number;
  readonly waiting: Set<string>;
}

/**
 * Limits the concurrent runs of each user. Waiting runs are in the log; only the ids of their sessions are kept here.
 */
export class UserSlots {
  readonly #max: number;
  readonly #users = new Map<string, OneUser>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a slot for a run of a session; false if none is free: then `leave` returns the session later. */
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

  /** Returns a slot; returns the session that has waited longest, or null. */
  leave(userId: string): string | null {
    const slots = this.#users.get(userId);
    if (slots === undefined) return null;
    slots.running -= 1;
    const [next = null] = slots.waiting;
    if (next !== null) slots.waiting.delete(next);
    else if (slots.running === 0) this.#users.delete(userId);
    return next;
  }

  /** Removes and returns the waiting sessions, so that the caller can notify about them again. */
  takeWaiting(): readonly string[] {
    const all = [...this.#users.values()].flatMap(({ waiting }) => [...waiting]);
    for (const { waiting } of this.#users.values()) waiting.clear();
    return all;
  }
}
