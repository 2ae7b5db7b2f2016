import { randomUUID } from "node:crypto";
import { SessionError } from "../../session/errors.ts";
import type { Subscription } from "../../session/store-driver.ts";
import type { Listener } from "./postgres-connection.ts";
import { DATABASE_NOW_MS, type PostgresHandle } from "./postgres-handle.ts";
import { IS_LIVE, sessionsIn } from "./session-row.ts";

const HEARTBEAT_MS = 5000;
/** How long a session counts as watched after the last heartbeat of a watcher. */
const WATCHED_MS = 60_000;

/** SQL for the RETURNING clause of every change to a row in `heads`: notifies if the session is watched. */
export function notifyIfWatched(channel: string): string {
  // The first condition saves reading the clock for the many sessions that are never watched.
  return `CASE WHEN watched_until_ms > 0 AND watched_until_ms > ${DATABASE_NOW_MS} THEN pg_notify('${channel}', session_id) END`;
}

/**
 * Notifies watchers of appends to a session and of its deletion, by any process, with LISTEN and NOTIFY.
 *
 * `heads.watched_until_ms` says until when a session is watched, and every change to a watched session sends a notification.
 * An append to a session without watchers sends none, which matters because the database sends notifications one at a time.
 * No append is missed: the row serializes appends with the update of `watched_until_ms`, so an append either comes first and
 * the watcher reads it, or it sees that the session is watched.
 *
 * A heartbeat extends the expiry and sends a notification to this process. If it does not arrive before the next heartbeat,
 * the connection is dead and is replaced. Notifications can be lost between two connections, so every watcher is woken once
 * the new connection listens.
 */
export class Subscriptions {
  readonly #handle: PostgresHandle;
  readonly #wakes = new Map<string, Set<() => void>>();
  readonly #own = `:${randomUUID()}`;
  #listener: Promise<Listener> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #heartbeatArrived = true;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
  }

  async subscribe(sessionId: string, wake: () => void): Promise<Subscription> {
    this.#wakes.set(sessionId, (this.#wakes.get(sessionId) ?? new Set()).add(wake));
    try {
      await this.#listen();
      await this.#markWatched([sessionId]);
    } catch (error) {
      this.#remove(sessionId, wake);
      // A read-only replica supports neither the update nor LISTEN; its watchers poll.
      if (error instanceof SessionError && error.code === "READ_ONLY") return { close: () => {} };
      throw error;
    }
    return { close: () => this.#remove(sessionId, wake) };
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#stopListening();
  }

  async #listen(): Promise<void> {
    if (this.#listener === null) {
      this.#heartbeatArrived = true;
      const listener = this.#handle.listen({
        notified: (payload) => this.#notified(payload),
        listening: () => this.#wakeAll(),
      });
      this.#listener = listener;
      listener.catch(() => {
        if (this.#listener === listener) this.#listener = null;
      });
    }
    await this.#listener;
    this.#timer ??= setInterval(() => void this.#heartbeat(), HEARTBEAT_MS).unref();
  }

  async #heartbeat(): Promise<void> {
    if (this.#wakes.size === 0) return;
    try {
      if (!this.#heartbeatArrived) await this.#stopListening();
      await this.#listen();
      this.#heartbeatArrived = false;
      await this.#markWatched([...this.#wakes.keys()]);
      await this.#handle.write("SELECT pg_notify($1::text, $2::text)", [this.#handle.channel, this.#own]);
    } catch {
      // The server cannot be reached; the next heartbeat tries again. Watchers poll meanwhile.
      this.#heartbeatArrived = false;
    }
  }

  async #stopListening(): Promise<void> {
    const listener = this.#listener;
    this.#listener = null;
    try {
      await (await listener)?.close();
    } catch {
      // It never opened, or its connection is already broken.
    }
  }

  #notified(payload: string): void {
    if (payload === this.#own) this.#heartbeatArrived = true;
    for (const wake of this.#wakes.get(payload) ?? []) wake();
  }

  #wakeAll(): void {
    for (const wakes of this.#wakes.values()) for (const wake of wakes) wake();
  }

  async #markWatched(sessionIds: readonly string[]): Promise<void> {
    const { schema } = this.#handle;
    await this.#handle.write(
      // Locks the rows in the order of their keys, as all other code does, to prevent deadlocks.
      `UPDATE ${schema}.heads SET watched_until_ms = ${DATABASE_NOW_MS} + ${WATCHED_MS}
       WHERE session_key IN (
         SELECT session_key FROM ${sessionsIn(schema)}
         JOIN json_array_elements_text($1::text::json) AS watched (id) USING (id)
         WHERE ${IS_LIVE} ORDER BY session_key FOR NO KEY UPDATE OF heads
       )`,
      [JSON.stringify(sessionIds)],
    );
  }

  #remove(sessionId: string, wake: () => void): void {
    const wakes = this.#wakes.get(sessionId);
    wakes?.delete(wake);
    if (wakes?.size === 0) this.#wakes.delete(sessionId);
  }
}
