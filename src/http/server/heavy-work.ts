import { type LongWork, withLongWork } from "../../internal/long-work.ts";
import { HttpError } from "./http-error.ts";

/** What a request may read before it counts as heavy. */
const LIGHT_BYTES = 1024 * 1024;
/** How many of a user's heavy requests, and of all users', may wait. */
const WAITING_PER_USER = 32;
const WAITING_MAX = 2000;
const WAIT_MS_MAX = 30_000;
/** For how long a heavy request keeps its slot while others wait for one. */
const HOLD_MS_MAX = 60_000;
const LOOK_MS = 1000;

/** How many heavy requests are under way at once. */
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
 * The requests that read much of what sessions say: each holds some of that in memory, so that only a few go on at once.
 *
 * - A request is heavy once it has read a mebibyte; it goes on when it has a slot, and keeps that until it is answered and
 *   its client has taken the answer.
 * - Slots go round among the users who wait, so that whoever asks for much waits behind those who ask for little.
 * - A request that waits for half a minute is refused; one that has had its slot for a minute loses it to others that wait.
 * - A request whose client is gone stops.
 */
export class HeavyWork {
  readonly #slots: number;
  /** In the order in which their users are next. */
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #holders = new Map<HeavyRequest, number>();
  #count = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor({ heavyAtOnce }: HeavyLimits) {
    this.#slots = heavyAtOnce;
  }

  /** A request, whose client is gone when the signal aborts; null where others look after that. */
  open(userId: string, signal: AbortSignal | null): HeavyRequest {
    return new HeavyRequest(this, userId, signal);
  }

  /** Resolves when the request has a slot. @throws {HttpError} `TOO_MANY_ANSWERS` or `OVERLOADED`. */
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
      this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    });
  }

  /** Gives up the slot of a request, or its place among those that wait. */
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
      // The user goes to the end, so that others are next.
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

  #look(): void {
    const now = performance.now();
    for (const waiter of [...this.#waiting.values()].flat()) {
      if (now - waiter.since > WAIT_MS_MAX) this.#drop(waiter, overloaded());
    }
    this.#next();
    // A slot is taken back only from whoever has had it for long: the first of them has had it longest.
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

/** One request, as far as it may be heavy. */
export class HeavyRequest implements LongWork, Disposable {
  readonly userId: string;
  readonly #all: HeavyWork;
  readonly #signal: AbortSignal | null;
  #isLeft = false;
  #bytes = 0;
  #isHeavy = false;
  #ended: "answered" | "taken" | null = null;
  /** Whether its answer is still being made when it is sent. */
  isStream = false;
  /** What ends it where it holds its slot for too long. */
  onTaken: (() => void) | null = null;

  constructor(all: HeavyWork, userId: string, signal: AbortSignal | null) {
    this.#all = all;
    this.userId = userId;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#left, { once: true });
  }

  get isHeavy(): boolean {
    return this.#isHeavy;
  }

  /** Runs a part of the request. */
  run<T>(task: () => T): T {
    return withLongWork(this, task);
  }

  beforeSlice(bytes: number): Promise<void> | null {
    // What it has set going beside its answer is not its own any more.
    if (this.#ended === "answered" && !this.isStream) return null;
    if (this.#ended === "taken") throw overloaded();
    if (this.#ended !== null || this.#isLeft || this.#signal?.aborted === true) throw gone();
    this.#bytes += bytes;
    if (this.#isHeavy || this.#bytes <= LIGHT_BYTES) return null;
    this.#isHeavy = true;
    return this.#all.take(this);
  }

  /** Takes a slot before it reads something that may be large. */
  async begin(): Promise<void> {
    if (this.#isHeavy || this.#ended !== null) return;
    this.#isHeavy = true;
    await this.#all.take(this);
  }

  /** Gives its slot back; it may take one again. */
  pause(): void {
    this.#leave();
    this.#isHeavy = false;
  }

  /** Its answer is made; it keeps its slot until the client has it. */
  answered(): void {
    if (!this.isStream) this.#ended ??= "answered";
  }

  /** Takes its slot away. */
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
    this.#signal?.removeEventListener("abort", this.#left);
    this.#leave();
  }

  /** Its client is gone. */
  leave(): void {
    this.#isLeft = true;
    this.#leave();
  }

  readonly #left = (): void => this.leave();

  #leave(): void {
    if (this.#isHeavy) this.#all.leave(this);
  }
}

/** @throws {HttpError} where a user has more to read than there may be. */
export function tooMany(what: string): HttpError {
  return new HttpError("TOO_MANY_ANSWERS", `${what}; read the answers to the others first.`, {
    headers: { "retry-after": "5" },
  });
}

export function overloaded(): HttpError {
  return new HttpError("OVERLOADED", "The server has as many large answers under way as it makes; try again later.", {
    headers: { "retry-after": "5" },
  });
}

function gone(): HttpError {
  return new HttpError("INVALID_REQUEST", "The client has left before the answer was made.");
}
