import { HttpError } from "./http-error.ts";

/** About what one parsed value takes beside its text. */
const VALUE_BYTES = 64;

/** How many bytes of bodies there may be at once. */
export interface BudgetLimits {
  readonly bodyBytesPerUser: number;
  readonly bodyBytesAtOnce: number;
}

/**
 * What the bodies of requests that are under way take together, so that many large ones at once are refused before they
 * fill the memory.
 *
 * - A body counts with the bytes that have come, and with 64 more for each JSON value, until its request is answered.
 * - Whoever sends slowly takes up only what they have sent.
 */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #byUser = new Map<string, number>();
  #bytes = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Counts the body of one request, until that is disposed of. */
  open(userId: string): BodyMeter {
    let own = 0;
    return {
      take: (bytes, values) => {
        const more = bytes + values * VALUE_BYTES;
        this.#check(userId, more);
        own += more;
        this.#add(userId, more);
      },
      [Symbol.dispose]: () => {
        this.#add(userId, -own);
        own = 0;
      },
    };
  }

  #check(userId: string, more: number): void {
    const { bodyBytesPerUser, bodyBytesAtOnce } = this.#limits;
    if ((this.#byUser.get(userId) ?? 0) + more > bodyBytesPerUser) {
      throw new HttpError(
        "TOO_MANY_BODIES",
        `The bodies that a user sends at once may take ${bodyBytesPerUser} bytes; wait for the others to be answered.`,
        { headers: { "retry-after": "1" } },
      );
    }
    if (this.#bytes + more > bodyBytesAtOnce) {
      throw new HttpError("OVERLOADED", "The server has as many bodies under way as it takes; try again later.", {
        headers: { "retry-after": "1" },
      });
    }
  }

  #add(userId: string, more: number): void {
    this.#bytes += more;
    const bytes = (this.#byUser.get(userId) ?? 0) + more;
    if (bytes === 0) this.#byUser.delete(userId);
    else this.#byUser.set(userId, bytes);
  }
}

/** Counts what one body takes. */
export interface BodyMeter extends Disposable {
  /** @throws {HttpError} `TOO_MANY_BODIES` or `OVERLOADED` when that is too much. */
  take(bytes: number, values: number): void;
}
