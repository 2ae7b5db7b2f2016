import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { sessionExists } from "../rows/row-maker.ts";
import type { MakeLimits, NewSession } from "../rows/row-port.ts";
import type { ForkReferences } from "./fork-references.ts";
import { indexedHeader } from "./index-record.ts";
import type { KeyNames } from "./key-names.ts";
import { forkLimit, type Limit, openLimit, type Quota, type Reservation } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { type Segment, segmentsOf, writeSegments } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import { placeOf } from "./session-log.ts";
import { CREATE } from "./session-scripts.ts";
import { stageRows } from "./staged-rows.ts";
import { nextStamp, settingsOf, type StoredSession, writeFacts, writeHead, writeSettings } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** What making sessions needs of its store. */
export interface MakerParts {
  readonly handle: RedisHandle;
  readonly names: KeyNames;
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly references: ForkReferences;
  readonly ttlSeconds: number | undefined;
}

/** Makes sessions: new ones, and forks, which take a position in another session's log. */
export class SessionMaker {
  readonly #parts: MakerParts;

  constructor(parts: MakerParts) {
    this.#parts = parts;
  }

  /** @throws {SessionError} `SESSION_EXISTS`, `CAPACITY`, or `SESSION_NOT_FOUND` where what it takes over is gone. */
  async make(session: NewSession<Segment>, { maxForks, maxOpenPerUser }: MakeLimits): Promise<StoredSession> {
    const { references } = this.#parts;
    const { header } = session.place.head;
    await this.#checkFree(header.id);
    const uid = uuidv7();
    const sourceId = header.forkedFrom?.sessionId;
    const limits: readonly Limit[] = [
      ...(maxForks === undefined || sourceId === undefined ? [] : [forkLimit(sourceId, maxForks)]),
      ...(maxOpenPerUser === undefined || header.userId === null ? [] : [openLimit(header.userId, maxOpenPerUser)]),
    ];
    const holder = session.origin.at(-1);
    if (holder === undefined) return this.#makeWithin(limits, uid, session);
    // What the fork takes must be safe before there is a fork; of one that is not made, the reference is let go again.
    if (!(await references.retain(holder, header.id, uid, holder.end)))
      throw new SessionNotFoundError(sourceId ?? holder.id);
    try {
      return await this.#makeWithin(limits, uid, session);
    } catch (error) {
      if (error instanceof SessionError && isRefusal(error)) await references.release(holder, uid);
      throw error;
    }
  }

  async #makeWithin(limits: readonly Limit[], uid: string, session: NewSession<Segment>): Promise<StoredSession> {
    const { index } = this.#parts;
    const { id } = session.place.head.header;
    if (limits.length === 0) return this.#make(uid, session);
    let reserved = await this.#reserve(id, limits);
    try {
      // A place that someone may have given back does not count any more, so that another one is taken.
      const made = await this.#make(uid, session, async () => {
        await releaseAll(reserved);
        reserved = [];
        reserved = await this.#reserve(id, limits);
      });
      await index.settleOne(id);
      await releaseAll(reserved);
      return made;
    } catch (error) {
      // Where it is not known whether the session was made, the place is given back once that shows.
      if (error instanceof SessionError && isRefusal(error)) await releaseAll(reserved);
      throw error;
    }
  }

  /** Takes a place under each limit, or under none. */
  async #reserve(id: string, limits: readonly Limit[]): Promise<readonly Reservation[]> {
    const reserved: Reservation[] = [];
    try {
      for (const limit of limits) reserved.push(await this.#parts.quota.reserve(id, limit));
      return reserved;
    } catch (error) {
      await releaseAll(reserved);
      throw error;
    }
  }

  async #make(
    uid: string,
    { place, origin, rows }: NewSession<Segment>,
    onFenced: () => Promise<void> = async () => {},
  ): Promise<StoredSession> {
    const { handle, names, index, ttlSeconds } = this.#parts;
    const { head } = place;
    const { header } = head;
    const { id } = header;
    const first = placeOf(origin.at(-1)?.end ?? 0);
    const fixed = [JSON.stringify(header), writeSegments(origin), JSON.stringify(indexedHeader(header))];
    const rest = [writeFacts(head), settingsOf(head), writeSettings(head)];
    let gen = 0;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await index.mark(id, gen);
      const stamp = nextStamp({ uid, rev: 0, gen });
      const staged = await stageRows(handle, names, id, rows);
      const keys = [names.session(id), names.entries(id, uid), names.positions(id, uid), names.floor(id)];
      const [kind, answer] = await handle.run(
        CREATE,
        [...keys, ...staged.keys],
        [
          ...[uid, String(gen), stamp.text, String(ttlSeconds ?? ""), first],
          ...[...fixed, writeHead(place, gen), ...rest, ...staged.args],
        ],
      );
      if (kind !== "ok") await staged.discard();
      // A client that sends again what was not answered finds its own session there.
      if (kind === "exists" && answer !== uid) throw sessionExists(id);
      if (kind !== "gen") {
        return { ...place, stamp, marked: true, deletedAt: null, segments: segmentsOf(origin, id, uid) };
      }
      gen = Number(answer);
      await onFenced();
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }

  async #checkFree(id: string): Promise<void> {
    const key = this.#parts.names.session(id);
    if ((await this.#parts.handle.command(key, ["EXISTS", key])) === 1) throw sessionExists(id);
  }
}

async function releaseAll(reserved: readonly Reservation[]): Promise<void> {
  for (const reservation of reserved) await reservation.release();
}

/** Whether it is certain that nothing was made. */
function isRefusal({ code }: SessionError): boolean {
  return code === "SESSION_EXISTS" || code === "CAPACITY" || code === "SESSION_BUSY";
}
