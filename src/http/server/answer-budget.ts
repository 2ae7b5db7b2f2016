import { overloaded, tooMany } from "./heavy-work.ts";

/** Answers that are shorter cost a connection no more than the connection itself does. */
const COUNTED_BYTES = 16 * 1024;

/** How many bytes of answers there may be at once. */
export interface AnswerLimits {
  readonly answerBytesPerUser: number;
  readonly answerBytesAtOnce: number;
}

/**
 * What answers take that were made and that their clients have not read yet. Whoever has much of that gets nothing more
 * until they have read it.
 */
export class AnswerBudget {
  readonly #limits: AnswerLimits;
  readonly #byUser = new Map<string, number>();
  #bytes = 0;

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  /** @throws {HttpError} `TOO_MANY_ANSWERS` or `OVERLOADED` where nothing more can be answered. */
  check(userId: string): void {
    const { answerBytesPerUser, answerBytesAtOnce } = this.#limits;
    if ((this.#byUser.get(userId) ?? 0) >= answerBytesPerUser) {
      throw tooMany(`The answers that a user has not read yet may take ${answerBytesPerUser} bytes`);
    }
    if (this.#bytes >= answerBytesAtOnce) throw overloaded();
  }

  /** Counts so many bytes until what comes back is called. */
  hold(userId: string, bytes: number): () => void {
    if (bytes < COUNTED_BYTES) return () => {};
    this.#add(userId, bytes);
    let held = true;
    return () => {
      if (held) this.#add(userId, -bytes);
      held = false;
    };
  }

  #add(userId: string, more: number): void {
    this.#bytes += more;
    const bytes = (this.#byUser.get(userId) ?? 0) + more;
    if (bytes === 0) this.#byUser.delete(userId);
    else this.#byUser.set(userId, bytes);
  }
}
