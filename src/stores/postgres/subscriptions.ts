import { randomUUID } from "node:crypto";
import { SessionError } from "../../session/errors.ts";
import type { Subscription } from "../../session/store-driver.ts";
import type { Ear } from "./postgres-connection.ts";
import { DATABASE_NOW_MS, type PostgresHandle } from "./postgres-handle.ts";
import { IS_LIVE, sessionsIn } from "./session-row.ts";

const BEAT_MS = 5000;
/** How long a session counts as watched after the last beat of someone who watches it. */
const WATCHED_MS = 60_000;

/** What whoever changes a session's row returns, so that those who watch it hear of it, as SQL. */
export function notifyIfWatched(channel: string): string {
  // Most sessions are never watched, and asking for the time is not free.
  return `CASE WHEN watched_until_ms > 0 AND watched_until_ms > ${DATABASE_NOW_MS} THEN pg_notify('${channel}', session_id) END`;
}

/**
 * Tells watchers that a session has grown or gone, whoever did it.
 *
 * A session's row says until when it is watched, and whoever changes a watched session notifies. So an append that nobody
 * waits for sends nothing, which matters because the database sends one notification after the other. The row is also
 * what makes this sure: an append either comes before the mark, and is found by looking, or sees it.
 *
 * Now and then a beat renews the marks and sends a word to ourselves. Who does not hear it has a connection that is dead,
 * and listens anew. As words may be lost between two connections, every watcher looks again once a new one listens.
 */
export class Subscriptions {
  readonly #handle: PostgresHandle;
  readonly #wakes = new Map<string, Set<() => void>>();
  readonly #own = `:${randomUUID()}`;
  #ear: Promise<Ear> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #heard = true;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
  }

  async subscribe(sessionId: string, wake: () => void): Promise<Subscription> {
    this.#wakes.set(sessionId, (this.#wakes.get(sessionId) ?? new Set()).add(wake));
    try {
      await this.#listen();
      await this.#mark([sessionId]);
    } catch (error) {
      this.#remove(sessionId, wake);
      // A copy that may only be read can be neither marked nor listened to; its watchers look by themselves.
      if (error instanceof SessionError && error.code === "READ_ONLY") return { close: () => {} };
      throw error;
    }
    return { close: () => this.#remove(sessionId, wake) };
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#deafen();
  }

  async #listen(): Promise<void> {
    if (this.#ear === null) {
      this.#heard = true;
      const ear = this.#handle.listen({
        notified: (payload) => this.#notified(payload),
        listening: () => this.#wakeAll(),
      });
      this.#ear = ear;
      ear.catch(() => {
        if (this.#ear === ear) this.#ear = null;
      });
    }
    await this.#ear;
    this.#timer ??= setInterval(() => void this.#beat(), BEAT_MS).unref();
  }

  async #beat(): Promise<void> {
    if (this.#wakes.size === 0) return;
    try {
      if (!this.#heard) await this.#deafen();
      await this.#listen();
      this.#heard = false;
      await this.#mark([...this.#wakes.keys()]);
      await this.#handle.write("SELECT pg_notify($1::text, $2::text)", [this.#handle.channel, this.#own]);
    } catch {
      // A server that is away is asked again at the next beat; watchers look by themselves meanwhile.
      this.#heard = false;
    }
  }

  async #deafen(): Promise<void> {
    const ear = this.#ear;
    this.#ear = null;
    try {
      await (await ear)?.close();
    } catch {
      // It was never open, or is broken, which is what it is being closed for.
    }
  }

  #notified(payload: string): void {
    if (payload === this.#own) this.#heard = true;
    for (const wake of this.#wakes.get(payload) ?? []) wake();
  }

  #wakeAll(): void {
    for (const wakes of this.#wakes.values()) for (const wake of wakes) wake();
  }

  async #mark(sessionIds: readonly string[]): Promise<void> {
    const { schema } = this.#handle;
    await this.#handle.write(
      // In the order of the keys, as others that lock several rows do, so that nobody waits in a circle.
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
