import { nextSlice } from "../../internal/long-work.ts";
import { HttpError } from "./http-error.ts";

/** The approximate memory of one parsed value, beside its text. */
const VALUE_BYTES = 64;
/** Larger bodies are processed one at a time. */
const LARGE_BYTES: number = 1024 * 1024;

/** Limits on the bytes of bodies in memory. */
export interface BudgetLimits {
  readonly bodyBytesPerUser: number;
  readonly bodyBytesAtOnce: number;
}

/**
 * Counts the memory of the bodies of concurrent requests, so that many large ones are refused before they fill the memory.
 *
 * - A body counts with the bytes received, and with 64 more for each JSON value, until its request is answered.
 * - A slow client takes only as much of the budget as it has sent.
 * - Large bodies are processed one at a time: parsing and storing 16 MiB blocks the event loop for a while.
 */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #byUser = new Map<string, number>();
  #bytes = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Starts to count the body of one request, until the meter is disposed. */
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
        `The bodies of a user's concurrent requests may take ${bodyBytesPerUser} bytes; wait for the other answers.`,
        { headers: { "retry-after": "1" } },
      );
    }
    if (this.#bytes + more > bodyBytesAtOnce) {
      throw new HttpError("OVERLOADED", "The server has too many request bodies in memory; retry later.", {
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

/** Counts the memory of one body. */
export interface BodyMeter extends Disposable {
  /** The bytes received so far. */
  readonly bytes: number;
  /** @throws {HttpError} `TOO_MANY_BODIES` or `OVERLOADED` if a limit is exceeded. */
  take(bytes: number, values: number): void;
  /** Resolves when a body of this many bytes, which is received completely, may be processed. */
  complete(bytes: number): Promise<void>;
}
