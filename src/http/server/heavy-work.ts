import { type LongWork, withLongWork } from "../../internal/long-work.ts";
import { HttpError } from "./http-error.ts";

/** The bytes that a request may read before it counts as heavy. */
const LIGHT_BYTES = 1024 * 1024;
/** How many heavy requests may wait in the queue, of one user and of all users. */
const WAITING_PER_USER = 32;
const WAITING_MAX = 2000;
const WAIT_MS_MAX = 30_000;
/** How long a heavy request keeps its slot while others wait for one. */
const HOLD_MS_MAX = 60_000;
const SWEEP_MS = 1000;

/** How many heavy requests run concurrently. */
export interface HeavyLimits {
  readonly heavyAtOnce: number;
}

interface Waiter {
  readonly request: HeavyRequest;
  readonly since: number;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Limits how many requests that read much data run concurrently, because each holds some of that data in memory.
 *
 * - A request is heavy once it has read a mebibyte; it continues when it has a slot, and keeps the slot until its client has
 *   received the answer.
 * - Free slots are given to the waiting users in turn, so that a user with many requests does not delay those with few.
 * - A request that waits for half a minute is refused; a request that has had its slot for a minute loses it if others wait.
 * - A request whose client has disconnected stops.
 */
export class HeavyWork {
  readonly #slots: number;
  /** The queues of the users, in the order in which they get the next slots. */
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #holders = new Map<HeavyRequest, number>();
  #count = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor({ heavyAtOnce }: HeavyLimits) {
    this.#slots = heavyAtOnce;
  }

  /** Starts to track a request. `signal` aborts when its client disconnects; null if the caller calls `leave` instead. */
  open(userId: string, signal: AbortSignal | null): HeavyRequest {
    return new HeavyRequest(this, userId, signal);
  }

  /**
   * Takes a slot: null if one is free, else a promise that resolves when the request gets one. @throws {HttpError}
   * `TOO_MANY_ANSWERS` or `OVERLOADED`.
   */
  take(request: HeavyRequest): Promise<void> | null {
    const { userId } = request;
    if (this.#holders.size < this.#slots && this.#count === 0) {
      this.#holders.set(request, performance.now());
      return null;
    }
    const own = this.#waiting.get(userId) ?? [];
    if (own.length >= WAITING_PER_USER) throw tooMany(`More than ${WAITING_PER_USER} of your requests wait`);
    if (this.#count >= WAITING_MAX) throw overloaded();
    return new Promise((resolve, reject) => {
      this.#waiting.set(userId, [...own, { request, since: performance.now(), resolve, reject }]);
      this.#count += 1;
      this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    });
  }

  /** Releases the slot of a request, or removes the request from the queue. */
  leave(request: HeavyRequest): void {
    const own = this.#waiting.get(request.userId) ?? [];
    const waiter = own.find((each) => each.request === request);
    if (waiter !== undefined) this.#drop(waiter, gone());
    if (this.#holders.delete(request)) this.#next();
  }

  #next(): void {
    while (this.#holders.size < this.#slots) {
      const [userId, own] = this.#waiting.entries().next().value ?? [];
      const [first, ...others] = own ?? [];
      if (userId === undefined || first === undefined) break;
      // The user moves to the end of the order, so that others are next.
      this.#waiting.delete(userId);
      if (others.length > 0) this.#waiting.set(userId, others);
      this.#count -= 1;
      this.#holders.set(first.request, performance.now());
      first.resolve();
    }
    if (this.#count > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    const now = performance.now();
    for (const waiter of [...this.#waiting.values()].flat()) {
      if (now - waiter.since > WAIT_MS_MAX) this.#drop(waiter, overloaded());
    }
    this.#next();
    // Only the oldest holder can lose its slot: the map is in the order in which the slots were taken.
    const [oldest, since = now] = this.#holders.entries().next().value ?? [];
    if (oldest !== undefined && now - since > HOLD_MS_MAX) oldest.end();
  }

  #drop(waiter: Waiter, error: HttpError): void {
    const { userId } = waiter.request;
    const others = (this.#waiting.get(userId) ?? []).filter((each) => each !== waiter);
    if (others.length > 0) this.#waiting.set(userId, others);
    else this.#waiting.delete(userId);
    this.#count -= 1;
    waiter.reject(error);
  }
}

/** One request that may be heavy: counts what it reads, and holds its slot. */
export class HeavyRequest implements LongWork, Disposable {
  readonly userId: string;
  readonly #all: HeavyWork;
  readonly #signal: AbortSignal | null;
  #isLeft = false;
  #bytes = 0;
  #isHeavy = false;
  #ended: "answered" | "taken" | null = null;
  /** Whether the answer is produced while it is sent. */
  isStream = false;
  /** Closes the connection if the request holds its slot for too long. */
  onTaken: (() => void) | null = null;

  constructor(all: HeavyWork, userId: string, signal: AbortSignal | null) {
    this.#all = all;
    this.userId = userId;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get isHeavy(): boolean {
    return this.#isHeavy;
  }

  /** Runs a function, whose reads are counted for this request. */
  run<T>(task: () => T): T {
    return withLongWork(this, task);
  }

  beforeSlice(bytes: number): Promise<void> | null {
    // Background work that the request started no longer counts.
    if (this.#ended === "answered" && !this.isStream) return null;
    if (this.#ended === "taken") throw overloaded();
    if (this.#ended !== null || this.#isLeft || this.#signal?.aborted === true) throw gone();
    this.#bytes += bytes;
    if (this.#isHeavy || this.#bytes <= LIGHT_BYTES) return null;
    this.#isHeavy = true;
    return this.#all.take(this);
  }

  /** Takes a slot before a read that may be large. */
  async begin(): Promise<void> {
    if (this.#isHeavy || this.#ended !== null) return;
    this.#isHeavy = true;
    await this.#all.take(this);
  }

  /** Releases the slot; the request may take one again. */
  pause(): void {
    this.#leave();
    this.#isHeavy = false;
  }

  /** Called when the answer is complete; the slot is kept until the client has received it. */
  answered(): void {
    if (!this.isStream) this.#ended ??= "answered";
  }

  /** Takes the slot away, and ends the request if its answer has started. */
  end(): void {
    if (this.onTaken === null) {
      this.pause();
      return;
    }
    this.#ended = "taken";
    this.#leave();
    this.onTaken();
  }

  [Symbol.dispose](): void {
    this.#ended ??= "answered";
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#leave();
  }

  /** Called when the client has disconnected. */
  leave(): void {
    this.#isLeft = true;
    this.#leave();
  }

  readonly #onAbort = (): void => this.leave();

  #leave(): void {
    if (this.#isHeavy) this.#all.leave(this);
  }
}

/** The error for a user who has too many unread answers or waiting requests. */
export function tooMany(what: string): HttpError {
  return new HttpError("TOO_MANY_ANSWERS", `${what}; read the answers to the others first.`, {
    headers: { "retry-after": "5" },
  });
}

export function overloaded(): HttpError {
  return new HttpError("OVERLOADED", "The server has too many large answers in progress; retry later.", {
    headers: { "retry-after": "5" },
  });
}

function gone(): HttpError {
  return new HttpError("INVALID_REQUEST", "The client disconnected before the answer was complete.");
}
