import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError } from "../../session/errors.ts";
import { sessionLimitsOf } from "../complete/session-limits.ts";
import { isOpen } from "../../session/query.ts";
import type { DriverPurge } from "../../session/store-driver.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { PURGE, SET_DELETED } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** Deletes, undeletes and purges sessions. A purge keeps the entries that forks begin with. */
export class Removal {
  readonly #handle: RedisHandle;
  readonly #port: RedisPort;

  constructor(port: RedisPort) {
    this.#handle = port.handle;
    this.#port = port;
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#setDeleted(sessionId, this.#port.clock().toISOString());
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    const session = options.maxOpenPerUser === undefined ? null : await this.#port.loadAny(sessionId);
    const opens = session !== null && session.deletedAt !== null && isOpen(session.head);
    const limits = opens ? sessionLimitsOf(session.head.header, options) : [];
    return this.#port.quota.within(sessionId, limits, () => this.#setDeleted(sessionId, ""));
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    const { index, references } = this.#port;
    await references.finish();
    if (sessionId !== undefined) return (await this.#purgeOne(sessionId, before)) ? 1 : 0;
    await index.refresh();
    let purged = 0;
    for await (const ids of index.before("deleted-at", before)) {
      for (const id of ids) {
        const matches = userId === undefined || (await this.#port.loadAny(id))?.head.header.userId === userId;
        if (matches && (await this.#purgeOne(id, before))) purged += 1;
      }
    }
    return purged;
  }

  async #setDeleted(sessionId: string, deletedAt: string): Promise<boolean> {
    const { names } = this.#handle;
    const call = uuidv7();
    return this.#inGeneration(sessionId, async ({ stamp: { uid, gen } }) => {
      const args = [uid, String(gen), deletedAt, String(Date.now()), call];
      const [kind] = await this.#handle.run(SET_DELETED, names.all(sessionId), args);
      this.#port.cache.forget(sessionId);
      return kind === "gen" ? null : kind === "ok";
    });
  }

  /** Returns false if the session does not exist, or was undeleted in the meantime. */
  async #purgeOne(id: string, before: string): Promise<boolean> {
    const { cache, index, references } = this.#port;
    const purged = await this.#inGeneration(id, async (session) => {
      const { uid, gen } = session.stamp;
      await references.releaseDead({ id, uid });
      const [kind] = await references.removing(session, () =>
        this.#handle.run(PURGE, this.#handle.names.all(id, uid), [uid, String(gen), before]),
      );
      if (kind === "gen") return null;
      cache.forget(id);
      return kind !== "no";
    });
    await index.refreshOne(id);
    return purged;
  }

  /** Marks a session and runs `act` on it. If `act` returns null, the generation of the mark has ended, and both are repeated. */
  async #inGeneration(id: string, act: (session: StoredSession) => Promise<boolean | null>): Promise<boolean> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const session = await this.#port.loadAny(id);
      if (session === null) return false;
      if (!session.marked) await this.#port.index.mark(id, session.stamp.gen);
      const done = await act(session);
      if (done !== null) return done;
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }
}
