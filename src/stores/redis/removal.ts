import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError } from "../../session/errors.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import type { ForkReferences } from "./fork-references.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { Listing } from "./listing.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import type { Quota } from "./quota.ts";
import { readSegments } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import { PURGE, SET_DELETED } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** What removing sessions needs of its store. */
export interface RemovalParts {
  readonly port: RedisPort;
  readonly cache: SessionCache<StoredSession>;
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly listing: Listing;
  readonly references: ForkReferences;
  readonly clock: () => Date;
}

/** Deletes sessions, brings them back, and purges them, sparing what forks build on. */
export class Removal {
  readonly #handle: RedisHandle;
  readonly #parts: RemovalParts;

  constructor(handle: RedisHandle, parts: RemovalParts) {
    this.#handle = handle;
    this.#parts = parts;
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#setDeleted(sessionId, this.#parts.clock().toISOString());
  }

  async undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): Promise<boolean> {
    const { port, quota } = this.#parts;
    const session = maxOpenPerUser === undefined ? null : await port.loadAny(sessionId);
    const { header, status } = session?.head ?? {};
    const opens = session?.deletedAt !== null && (status === "active" || status === "suspended");
    const limit = { part: "open", name: opens ? header?.userId : null, max: maxOpenPerUser } as const;
    return quota.within(sessionId, [limit], () => this.#setDeleted(sessionId, ""));
  }

  async purge(before: string): Promise<number> {
    let purged = 0;
    for await (const ids of this.#parts.listing.deletedBefore(before)) {
      for (const id of ids) if (await this.#purgeOne(id, before)) purged += 1;
    }
    return purged;
  }

  async #setDeleted(sessionId: string, deletedAt: string): Promise<boolean> {
    const { names } = this.#handle;
    const call = uuidv7();
    return this.#inGeneration(sessionId, async ({ stamp: { uid, gen } }) => {
      const args = [uid, String(gen), deletedAt, String(Date.now()), names.channel(sessionId), call];
      const [kind] = await this.#handle.run(SET_DELETED, names.all(sessionId), args);
      this.#parts.cache.forget(sessionId);
      return kind === "gen" ? null : kind === "ok";
    });
  }

  /** False when the session is not there, or was brought back meanwhile. */
  async #purgeOne(id: string, before: string): Promise<boolean> {
    const { cache, index, references } = this.#parts;
    const purged = await this.#inGeneration(id, async ({ stamp: { uid, gen } }) => {
      await references.releaseDead({ id, uid });
      const [kind, rest] = (await this.#handle.run(PURGE, this.#handle.names.all(id, uid), [
        uid,
        String(gen),
        before,
      ])) as [string, string | undefined];
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
    const { port, index } = this.#parts;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const session = await port.loadAny(id);
      if (session === null) return false;
      if (!session.marked) await index.mark(id, session.stamp.gen);
      const done = await act(session);
      if (done !== null) return done;
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }
}
