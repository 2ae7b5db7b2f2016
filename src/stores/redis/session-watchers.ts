import { setTimeout as wait } from "node:timers/promises";
import type { Subscription } from "../../session/store-driver.ts";
import type { RedisSubscriber } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";

const BACK_ATTEMPTS_MAX = 100;
const BACK_WAIT_MS = 100;

/** Wakes those who watch sessions, over one connection that is made for the first of them. */
export class SessionWatchers {
  readonly #handle: RedisHandle;
  readonly #wakes = new Map<string, Set<() => void>>();
  #subscriber: Promise<RedisSubscriber> | null = null;
  #closed = false;

  constructor(handle: RedisHandle) {
    this.#handle = handle;
  }

  async subscribe(sessionId: string, wake: () => void): Promise<Subscription> {
    const subscriber = await this.#connect();
    const channel = this.#handle.names.session(sessionId);
    // A function of its own, so that one who subscribes twice is two.
    const own = (): void => wake();
    const wakes = this.#wakes.get(channel) ?? new Set();
    wakes.add(own);
    this.#wakes.set(channel, wakes);
    const close = (): void => this.#leave(subscriber, channel, own);
    try {
      await subscriber.subscribe(channel, () => this.#wake(channel));
    } catch (error) {
      close();
      throw this.#handle.failure(error);
    }
    return { close };
  }

  close(): void {
    this.#closed = true;
    this.#subscriber?.then(
      (subscriber) => subscriber.close(),
      () => {},
    );
  }

  #connect(): Promise<RedisSubscriber> {
    this.#subscriber ??= this.#handle
      .openSubscriber(() => void this.#wakeAll())
      .catch((error) => {
        this.#subscriber = null;
        throw error;
      });
    return this.#subscriber;
  }

  #leave(subscriber: RedisSubscriber, channel: string, wake: () => void): void {
    const wakes = this.#wakes.get(channel);
    if (wakes === undefined || !wakes.delete(wake) || wakes.size > 0) return;
    this.#wakes.delete(channel);
    // What is still told of the session is told to nobody.
    if (!this.#closed) subscriber.unsubscribe(channel).catch(() => {});
  }

  #wake(channel: string): void {
    for (const wake of this.#wakes.get(channel) ?? []) wake();
  }

  /** After a time without a connection nobody knows what was missed, so that everybody looks, once looking is possible. */
  async #wakeAll(): Promise<void> {
    for (let attempt = 1; attempt <= BACK_ATTEMPTS_MAX && !this.#closed; attempt++) {
      try {
        await this.#handle.ping();
        break;
      } catch {
        await wait(BACK_WAIT_MS, undefined, { ref: false });
      }
    }
    for (const channel of this.#wakes.keys()) this.#wake(channel);
  }
}
