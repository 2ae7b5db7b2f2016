import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError } from "../../session/errors.ts";
import type { DriverPurge } from "../../session/store-driver.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import type { ForkReferences } from "./fork-references.ts";
import type { KeyNames } from "./key-names.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { Listing } from "./listing.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { openLimit, type Quota } from "./quota.ts";
import { readSegments } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import type { SessionLog } from "./session-log.ts";
import { PURGE, SET_DELETED } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** What removing sessions needs of its store. */
export interface RemovalParts {
  readonly handle: RedisHandle;
  readonly names: KeyNames;
  readonly log: SessionLog;
  readonly cache: SessionCache<StoredSession>;
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly listing: Listing;
  readonly references: ForkReferences;
  readonly clock: () => Date;
}

/** Deletes sessions, brings them back, and purges them, sparing what forks build on. */
export class Removal {
  readonly #parts: RemovalParts;

  constructor(parts: RemovalParts) {
    this.#parts = parts;
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#setDeleted(sessionId, this.#parts.clock().toISOString());
  }

  async undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): Promise<boolean> {
    const { log, quota, index } = this.#parts;
    const session = maxOpenPerUser === undefined ? null : await log.loadAny(sessionId);
    const { header, status } = session?.head ?? {};
    const userId = header?.userId ?? null;
    const opens = session?.deletedAt !== null && (status === "active" || status === "suspended");
    if (!opens || userId === null || maxOpenPerUser === undefined) return this.#setDeleted(sessionId, "");
    const reservation = await quota.reserve(sessionId, openLimit(userId, maxOpenPerUser));
    // Where it is not known whether it is back, the place is given back once that shows.
    const done = await this.#setDeleted(sessionId, "");
    await index.settleOne(sessionId);
    await reservation.release();
    return done;
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    const { log, listing } = this.#parts;
    if (sessionId !== undefined) return (await this.#purgeOne(sessionId, before)) ? 1 : 0;
    let purged = 0;
    for await (const ids of listing.deletedBefore(before)) {
      for (const id of ids) {
        const mine = userId === undefined || (await log.loadAny(id))?.head.header.userId === userId;
        if (mine && (await this.#purgeOne(id, before))) purged += 1;
      }
    }
    return purged;
  }

  async #setDeleted(sessionId: string, deletedAt: string): Promise<boolean> {
    const { handle, names, cache } = this.#parts;
    const call = uuidv7();
    return this.#inGeneration(sessionId, async ({ stamp: { uid, gen } }) => {
      const keys = [names.session(sessionId), names.lease(sessionId)];
      const args = [uid, String(gen), deletedAt, String(Date.now()), names.channel(sessionId), call];
      const [kind] = await handle.run(SET_DELETED, keys, args);
      cache.forget(sessionId);
      return kind === "gen" ? null : kind === "ok";
    });
  }

  /** False when the session is not there, or was brought back meanwhile. */
  async #purgeOne(id: string, before: string): Promise<boolean> {
    const { handle, names, cache, index, references } = this.#parts;
    const purged = await this.#inGeneration(id, async ({ stamp: { uid, gen } }) => {
      await references.releaseDead({ id, uid });
      const keys = [
        names.session(id),
        names.entries(id, uid),
        names.positions(id, uid),
        names.forks(id, uid),
        names.checkpoints(id, uid),
        names.remains(id, uid),
        names.lease(id),
        names.floor(id),
      ];
      const [kind, rest] = (await handle.run(PURGE, keys, [uid, String(gen), before])) as [string, string | undefined];
      if (kind === "gen") return null;
      cache.forget(id);
      if (kind === "cut") await references.cut({ id, uid }, Number(rest));
      const source = kind === "removed" ? readSegments(rest as string).at(-1) : undefined;
      if (source !== undefined) await references.release(source, uid);
      return kind !== "no";
    });
    await index.settleOne(id);
    return purged;
  }

  /** Does something to a session that is marked for it; null means that the mark no longer counts. */
  async #inGeneration(id: string, act: (session: StoredSession) => Promise<boolean | null>): Promise<boolean> {
    const { log, index } = this.#parts;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const session = await log.loadAny(id);
      if (session === null) return false;
      if (!session.marked) await index.mark(id, session.stamp.gen);
      const done = await act(session);
      if (done !== null) return done;
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }
}
