/** The runs that a user has here, and the sessions with one that waits to begin here. */
interface OneUser {
  running: number;
  readonly waiting: Set<string>;
}

/** How many runs each user has at once; what waits is in the log, and only its session's id is here. */
export class UserSlots {
  readonly #max: number;
  readonly #users = new Map<string, OneUser>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a slot for a run of a session; false where none is free, and `leave` names the session later. */
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

  /** Gives a slot back; the session that waits for one longest, or null. */
  leave(userId: string): string | null {
    const slots = this.#users.get(userId);
    if (slots === undefined) return null;
    slots.running -= 1;
    const [next = null] = slots.waiting;
    if (next !== null) slots.waiting.delete(next);
    else if (slots.running === 0) this.#users.delete(userId);
    return next;
  }

  /** Forgets those that wait, for whoever notifies about them again. */
  takeWaiting(): readonly string[] {
    const all = [...this.#users.values()].flatMap(({ waiting }) => [...waiting]);
    for (const { waiting } of this.#users.values()) waiting.clear();
    return all;
  }
}
