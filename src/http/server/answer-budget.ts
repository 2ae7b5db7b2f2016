import { overloaded, tooMany } from "./heavy-work.ts";

/** Shorter answers are not counted: the connection itself takes as much memory. */
const COUNTED_BYTES = 16 * 1024;

/** Limits on the bytes of answers in memory. */
export interface AnswerLimits {
  readonly answerBytesPerUser: number;
  readonly answerBytesAtOnce: number;
}

/**
 * Counts the bytes of answers that clients have not read yet. A user over the limit gets no more answers until they have read
 * some.
 */
export class AnswerBudget {
  readonly #limits: AnswerLimits;
  readonly #byUser = new Map<string, number>();
  #bytes = 0;

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  /** @throws {HttpError} `TOO_MANY_ANSWERS` or `OVERLOADED` if a limit is reached. */
  check(userId: string): void {
    const { answerBytesPerUser, answerBytesAtOnce } = this.#limits;
    if ((this.#byUser.get(userId) ?? 0) >= answerBytesPerUser) {
      throw tooMany(`Your unread answers take more than ${answerBytesPerUser} bytes`);
    }
    if (this.#bytes >= answerBytesAtOnce) throw overloaded();
  }

  /** Counts the bytes of an answer until the returned function is called. */
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
