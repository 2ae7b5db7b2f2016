import type { DriverForkOptions } from "../../session/store-driver.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { NOTHING_FOUND, planFirst } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/fold.ts";
import { forkedHeader } from "../../session/forked-header.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { Entry } from "../../session/entry.ts";
import type { HeadPlace } from "../rows/entry-state.ts";
import { encodePlan, type NewRow } from "../rows/encode-plan.ts";
import type { ForkReferences } from "./fork-references.ts";
import { indexedHeader } from "./index-record.ts";
import type { KeyNames } from "./key-names.ts";
import { forkLimit, type Limit, openLimit, type Quota, type Reservation } from "./quota.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { clipSegments, segmentAt } from "../rows/segments.ts";
import { type Segment, segmentsOf, writeSegments } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import { placeOf, type SessionLog } from "./session-log.ts";
import { CREATE } from "./session-scripts.ts";
import { stageRows } from "./staged-rows.ts";
import { nextStamp, settingsOf, type StoredSession, writeFacts, writeHead, writeSettings } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** What making sessions needs of its store. */
export interface MakerParts {
  readonly handle: RedisHandle;
  readonly names: KeyNames;
  readonly log: SessionLog;
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly references: ForkReferences;
  readonly clock: () => Date;
  readonly ttlSeconds: number | undefined;
}

/** A session that is to be made. */
interface NewSession {
  readonly uid: string;
  readonly place: HeadPlace;
  readonly inherited: readonly Segment[];
  readonly rows: readonly NewRow[];
}

/** Makes sessions: new ones, and forks, which take a position in another session's log. */
export class SessionMaker {
  readonly #parts: MakerParts;

  constructor(parts: MakerParts) {
    this.#parts = parts;
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    { maxOpenPerUser }: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    const now = this.#parts.clock().toISOString();
    const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
    const plan = planFirst(empty, drafts, now);
    const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    return this.#makeWithin(openLimits(header, maxOpenPerUser), { uid: uuidv7(), place, inherited: [], rows });
  }

  async fork(
    sourceId: string,
    header: SessionHeader,
    { at, maxForks, maxOpenPerUser }: DriverForkOptions,
  ): Promise<SessionHead> {
    const { log, references, clock } = this.#parts;
    const source = await log.load(sourceId);
    if (source === null) throw new SessionNotFoundError(sourceId);
    const version = await this.#versionAt(source, at);
    await this.#checkFree(header.id);
    const entryId = version === 0 ? null : await this.#idAt(source, version - 1);
    const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId, version }));
    const { head, ...places } = await this.#placeAt(source, forked, version);
    const place = { head: freezeDeep<SessionHead>({ ...head, updatedAt: clock().toISOString() }), ...places };
    const inherited = clipSegments(source.segments, 0, version);
    const fork = { uid: uuidv7(), place, inherited, rows: [] };
    const limits: readonly Limit[] = [
      ...(maxForks === undefined ? [] : [forkLimit(sourceId, maxForks)]),
      ...openLimits(header, maxOpenPerUser),
    ];
    if (version === 0) return this.#makeWithin(limits, fork);
    const holder = segmentAt(source.segments, version - 1);
    // What the fork takes must be safe before there is a fork; of one that is not made, the reference is let go again.
    if (!(await references.retain(holder, header.id, fork.uid, version))) throw new SessionNotFoundError(sourceId);
    try {
      return await this.#makeWithin(limits, fork);
    } catch (error) {
      if (error instanceof SessionError && isRefusal(error)) await references.release(holder, fork.uid);
      throw error;
    }
  }

  async #makeWithin(limits: readonly Limit[], session: NewSession): Promise<SessionHead> {
    const { index } = this.#parts;
    const { id } = session.place.head.header;
    if (limits.length === 0) return this.#make(session);
    await this.#checkFree(id);
    let reserved = await this.#reserve(id, limits);
    try {
      // A place that someone may have given back does not count any more, so that another one is taken.
      const head = await this.#make(session, async () => {
        await releaseAll(reserved);
        reserved = [];
        reserved = await this.#reserve(id, limits);
      });
      await index.settleOne(id);
      await releaseAll(reserved);
      return head;
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
    { uid, place, inherited, rows }: NewSession,
    onFenced: () => Promise<void> = async () => {},
  ): Promise<SessionHead> {
    const { handle, names, log, index, ttlSeconds } = this.#parts;
    const { head } = place;
    const { header } = head;
    const { id } = header;
    const first = placeOf(inherited.at(-1)?.end ?? 0);
    const fixed = [JSON.stringify(header), writeSegments(inherited), JSON.stringify(indexedHeader(header))];
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
        const segments = segmentsOf(inherited, id, uid);
        log.remember({ ...place, stamp, marked: true, deletedAt: null, segments });
        return head;
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

  async #versionAt(source: StoredSession, at: string | null | undefined): Promise<number> {
    if (at === undefined) return source.head.version;
    if (at === null) return 0;
    const entry = await this.#parts.log.findEntry(source, at);
    if (entry === null) throw new UnknownEntryError(source.head.header.id, at);
    return entry.seq + 1;
  }

  async #idAt({ segments }: StoredSession, seq: number): Promise<string> {
    return (JSON.parse((await this.#parts.log.rowAt(segments, seq)).body) as Entry).id;
  }

  async #placeAt(source: StoredSession, header: SessionHeader, version: number): Promise<HeadPlace> {
    const { head, leafSeq, factsSeq, segments } = source;
    if (version === 0 || version !== head.version) return this.#parts.log.headAt(segments, header, version);
    const modifiedAt = head.messageCount === 0 ? header.createdAt : head.modifiedAt;
    return { head: { ...head, header, openRuns: [], modifiedAt }, leafSeq, factsSeq };
  }
}

async function releaseAll(reserved: readonly Reservation[]): Promise<void> {
  for (const reservation of reserved) await reservation.release();
}

function openLimits({ userId }: SessionHeader, max: number | undefined): readonly Limit[] {
  return max === undefined || userId === null ? [] : [openLimit(userId, max)];
}

/** Whether it is certain that nothing was made. */
function isRefusal({ code }: SessionError): boolean {
  return code === "SESSION_EXISTS" || code === "CAPACITY" || code === "SESSION_BUSY";
}

function sessionExists(id: string): SessionError {
  return new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}
