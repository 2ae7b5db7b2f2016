import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import { sessionExists } from "../rows/row-maker.ts";
import type { MakeLimits, NewSession } from "../rows/row-port.ts";
import type { ForkReferences } from "./fork-references.ts";
import { isRefusal, type Quota } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { argsOf, placeOf } from "./redis-port.ts";
import { type Segment, segmentsOf, writeSegments } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import { CREATE } from "./session-scripts.ts";
import { nextStamp, type StoredSession, writeHead } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** What making sessions needs of its store. */
export interface MakerParts {
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly references: ForkReferences;
  readonly ttlSeconds: number | undefined;
}

/** Makes sessions: new ones, and forks, which take a position in another session's log. */
export class SessionMaker {
  readonly #handle: RedisHandle;
  readonly #parts: MakerParts;

  constructor(handle: RedisHandle, parts: MakerParts) {
    this.#handle = handle;
    this.#parts = parts;
  }

  /** @throws {SessionError} `SESSION_EXISTS`, `CAPACITY`, or `SESSION_NOT_FOUND` where what it takes over is gone. */
  async make(session: NewSession<Segment>, limits: MakeLimits): Promise<StoredSession> {
    const { references } = this.#parts;
    const { header } = session.place.head;
    await this.#checkFree(header.id);
    const uid = uuidv7();
    const holder = session.origin.at(-1);
    if (holder === undefined) return this.#makeWithin(limits, uid, session);
    // What the fork takes must be safe before there is a fork; of one that is not made, the reference is let go again.
    if (!(await references.retain(holder, header.id, uid, holder.end)))
      throw new SessionNotFoundError(header.forkedFrom?.sessionId ?? holder.id);
    try {
      return await this.#makeWithin(limits, uid, session);
    } catch (error) {
      if (isRefusal(error)) await references.release(holder, uid);
      throw error;
    }
  }

  #makeWithin(
    { maxForks, maxOpenPerUser }: MakeLimits,
    uid: string,
    session: NewSession<Segment>,
  ): Promise<StoredSession> {
    const { id, userId, forkedFrom } = session.place.head.header;
    const limits = [
      { part: "forks", name: forkedFrom?.sessionId, max: maxForks },
      { part: "open", name: userId, max: maxOpenPerUser },
    ] as const;
    return this.#parts.quota.within(id, limits, (renew) => this.#make(uid, session, renew));
  }

  async #make(
    uid: string,
    { place, origin, rows }: NewSession<Segment>,
    renew: () => Promise<void>,
  ): Promise<StoredSession> {
    const { index, ttlSeconds } = this.#parts;
    const { header } = place.head;
    const { id } = header;
    const first = placeOf(origin.at(-1)?.end ?? 0);
    const fixed = [String(ttlSeconds ?? ""), first, JSON.stringify(header), writeSegments(origin)];
    let gen = 0;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await index.mark(id, gen);
      const stamp = nextStamp({ uid, rev: 0, gen });
      const args = [uid, String(gen), stamp.text, ...fixed, writeHead(place.head, gen), ...argsOf(rows)];
      const [kind, answer] = await this.#handle.run(CREATE, this.#handle.names.all(id, uid), args);
      // A client that sends again what was not answered finds its own session there.
      if (kind === "exists" && answer !== uid) throw sessionExists(id);
      if (kind !== "gen") {
        const segments = segmentsOf(origin, id, uid);
        return { ...place, stamp, marked: true, writtenMs: Date.now(), deletedAt: null, segments };
      }
      gen = Number(answer);
      await renew();
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }

  async #checkFree(id: string): Promise<void> {
    const key = this.#handle.names.session(id);
    if ((await this.#handle.command(key, ["EXISTS", key])) === 1) throw sessionExists(id);
  }
}
