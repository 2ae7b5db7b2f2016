import { nextSlice } from "../../internal/long-work.ts";
import { HttpError } from "./http-error.ts";

/** About what one parsed value takes beside its text. */
const VALUE_BYTES = 64;
/** What has more bytes is worked on alone. */
const LARGE_BYTES: number = 1024 * 1024;

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
 * - Of large bodies that have come, one is worked on after the other: parsing and storing 16 MiB takes a while in which
 *   nothing else is answered.
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
    let [own, received] = [0, 0];
    return {
      get bytes() {
        return received;
      },
      take: (bytes, values) => {
        received += bytes;
        const more = bytes + values * VALUE_BYTES;
        this.#check(userId, more);
        own += more;
        this.#add(userId, more);
      },
      complete: async (bytes) => {
        if (bytes > LARGE_BYTES) await nextSlice();
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
  /** How many bytes have come. */
  readonly bytes: number;
  /** @throws {HttpError} `TOO_MANY_BODIES` or `OVERLOADED` when that is too much. */
  take(bytes: number, values: number): void;
  /** Resolves when a body of so many bytes, all of which have come, may be worked on. */
  complete(bytes: number): Promise<void>;
}
