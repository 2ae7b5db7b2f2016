import { setTimeout as wait } from "node:timers/promises";
import type { Subscription } from "../../session/store-driver.ts";
import type { RedisSubscriber } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";

const PING_ATTEMPTS_MAX = 100;
const PING_DELAY_MS = 100;

/** Notifies watchers of sessions, over one connection that the first watcher opens. */
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
    // A new function per subscription: the same callback subscribed twice must be two members of the set.
    const own = (): void => wake();
    const wakes = this.#wakes.get(channel) ?? new Set();
    wakes.add(own);
    this.#wakes.set(channel, wakes);
    const close = (): void => this.#unsubscribe(subscriber, channel, own);
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

  #unsubscribe(subscriber: RedisSubscriber, channel: string, wake: () => void): void {
    const wakes = this.#wakes.get(channel);
    if (wakes === undefined || !wakes.delete(wake) || wakes.size > 0) return;
    this.#wakes.delete(channel);
    // If this fails, later messages on the channel find no callback.
    if (!this.#closed) subscriber.unsubscribe(channel).catch(() => {});
  }

  #wake(channel: string): void {
    for (const wake of this.#wakes.get(channel) ?? []) wake();
  }

  /** After a lost connection, messages may have been missed, so all watchers are woken once the server answers again. */
  async #wakeAll(): Promise<void> {
    for (let attempt = 1; attempt <= PING_ATTEMPTS_MAX && !this.#closed; attempt++) {
      try {
        await this.#handle.ping();
        break;
      } catch {
        await wait(PING_DELAY_MS, undefined, { ref: false });
      }
    }
    for (const channel of this.#wakes.keys()) this.#wake(channel);
  }
}
