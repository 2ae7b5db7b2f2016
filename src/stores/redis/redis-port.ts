import { freezeDeep } from "../../internal/freeze-deep.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { type Coroutine, runAsync } from "../rows/coroutine.ts";
import type { EncodedPlan } from "../rows/row-encoding.ts";
import { sessionExists } from "../complete/session-exists.ts";
import { sessionLimitsOf, type MakeLimits } from "../complete/session-limits.ts";
import {
  type CommitConditions,
  type NewRowSession,
  PAGE_BYTES,
  type RowPort,
  type StateRow,
  type StoredRow,
} from "../rows/row-port.ts";
import { RowReader } from "../rows/row-reader.ts";
import { clipSegments } from "../rows/segments.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { ForkReferences } from "./fork-references.ts";
import { LeaseScripts } from "./lease-scripts.ts";
import { isRefusal, Quota } from "./quota.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisStoreOptions } from "./redis-store.ts";
import {
  argsOf,
  type HeadText,
  nextStamp,
  positionOf,
  readSegments,
  readStamp,
  rowOf,
  rowsOf,
  type Segment,
  segmentsOf,
  type StoredSession,
  writeHead,
  writeSegments,
} from "./stored-session.ts";
import { SessionIndex } from "./session-index.ts";
import { APPEND, CREATE, FIND, LOAD_SESSION, PAGE, ROW_AT } from "./session-scripts.ts";

const ATTEMPTS_MAX = 20;
const IDS_AT_ONCE = 1000;

/**
 * The rows of a Redis server. Nothing is locked: a script writes an append if the session still has the stamp that it was
 * planned on. A client may resend a script that got no reply, so a refused append may have been written by the first send;
 * `commit` therefore returns `unsure`, not `behind`.
 */
export class RedisPort implements RowPort<Segment, StoredSession> {
  readonly checksIds = true;
  readonly storeName: string;
  readonly handle: RedisHandle;
  readonly clock: () => Date;
  readonly ttlSeconds: number | undefined;
  readonly cache: SessionCache<StoredSession> = new SessionCache();
  readonly leases: LeaseScripts;
  readonly index: SessionIndex;
  readonly quota: Quota;
  readonly references: ForkReferences;
  readonly #reader: RowReader<Segment, StoredSession>;

  constructor(handle: RedisHandle, { clock, ttlSeconds }: RedisStoreOptions) {
    this.handle = handle;
    this.storeName = `Redis server ${handle.address}`;
    this.clock = clock ?? (() => new Date());
    this.ttlSeconds = ttlSeconds;
    this.leases = new LeaseScripts(handle, clock);
    this.index = new SessionIndex(this);
    this.quota = new Quota(handle, this.index);
    this.references = new ForkReferences(handle);
    this.#reader = new RowReader(this, this.cache);
  }

  async load(sessionId: string, deleted = false): Promise<StoredSession | null> {
    const session = await this.loadAny(sessionId);
    return session !== null && (session.deletedAt !== null) === deleted ? session : null;
  }

  /** The current version of a session, deleted or not; null if it does not exist. */
  async loadAny(sessionId: string): Promise<StoredSession | null> {
    const { cache } = this;
    const known = cache.get(sessionId);
    const [kind, ...fields] = await this.#loadIfChanged(sessionId, known?.stamp.text ?? "");
    if (kind === "same") return known as StoredSession;
    cache.forget(sessionId);
    if (kind === "none") return null;
    try {
      const session = await this.#sessionOf(sessionId, fields as string[]);
      cache.remember(session);
      return session;
    } catch (error) {
      // Its rows may have been purged since. If the session has changed, load it again.
      const [now] = await this.#loadIfChanged(sessionId, fields[0] as string);
      if (now === "same") throw error;
      return this.loadAny(sessionId);
    }
  }

  async rowAt({ id, uid }: Segment, seq: number): Promise<StateRow | undefined> {
    const [text] = await this.handle.run(ROW_AT, this.handle.names.all(id, uid), [positionOf(seq)]);
    return text === undefined ? undefined : rowOf(seq, text as string);
  }

  async findRows({ segments, head }: StoredSession, ids: readonly string[]): Promise<StoredRow[]> {
    const found: StoredRow[] = [];
    let missing = ids;
    for (const segment of clipSegments(segments, 0, head.version).reverse()) {
      if (missing.length === 0) break;
      const rows = await this.#findIn(segment, missing);
      found.push(...rows);
      const foundIds = new Set(rows.map((row) => row.id));
      missing = missing.filter((each) => !foundIds.has(each));
    }
    return found;
  }

  async page({ id, uid, start, end }: Segment, count: number, reverse: boolean): Promise<readonly string[]> {
    const args = [positionOf(start), positionOf(end - 1), count, PAGE_BYTES, reverse ? 1 : ""].map(String);
    return rowsOf(await this.handle.run(PAGE, this.handle.names.all(id, uid), args)).map(({ body }) => body);
  }

  async leaseToken({ head }: StoredSession): Promise<number | null> {
    return (await this.leases.current(head.header.id))?.token ?? null;
  }

  async commit(
    session: StoredSession,
    { rows, located }: EncodedPlan,
    { leaseToken, idsUnchecked }: CommitConditions,
  ): Promise<StoredSession | "behind" | "unsure"> {
    const { stamp: before, segments, deletedAt } = session;
    const { id } = session.head.header;
    if (deletedAt !== null) return "behind";
    if (!session.marked) await this.index.mark(id, before.gen);
    const stamp = nextStamp(before);
    const { names } = this.handle;
    const keys = [names.session(id), names.entries(id, before.uid), names.positions(id, before.uid)];
    let more = "";
    if (leaseToken !== null || idsUnchecked || this.ttlSeconds !== undefined) {
      keys.push(names.lease(id), names.forks(id, before.uid), names.checkpoints(id, before.uid));
      more = [leaseToken, this.leases.clockArg(), idsUnchecked ? 1 : "", this.ttlSeconds].join(" ");
    }
    const first = positionOf(session.head.version);
    const args = [before.text, stamp.text, writeHead(located.head, stamp.gen), more, first, ...argsOf(rows)];
    const [written] = await this.handle.run(APPEND, keys, args);
    if (written !== 1) return "unsure";
    const { head, leafSeq, factsSeq } = located;
    return { stamp, marked: true, writtenMs: Date.now(), deletedAt, segments, head, leafSeq, factsSeq };
  }

  locked<T>(work: (port: RedisPort) => Coroutine<T>): Promise<T> {
    return runAsync(work(this));
  }

  async make(session: NewRowSession<Segment>, limits: MakeLimits): Promise<StoredSession> {
    const { header } = session.located.head;
    if ((await this.handle.command("EXISTS", this.handle.names.session(header.id))) === 1)
      throw sessionExists(header.id);
    const uid = uuidv7();
    const source = session.origin.at(-1);
    if (source === undefined) return this.#makeWithin(limits, uid, session);
    // The inherited entries must be kept before the fork exists. If the fork is not created, the reference is released.
    if (!(await this.references.retain(source, header.id, uid, source.end)))
      throw new SessionNotFoundError(header.forkedFrom?.sessionId ?? source.id);
    try {
      return await this.#makeWithin(limits, uid, session);
    } catch (error) {
      if (isRefusal(error)) await this.references.release(source, uid);
      throw error;
    }
  }

  #makeWithin(limits: MakeLimits, uid: string, session: NewRowSession<Segment>): Promise<StoredSession> {
    const { header } = session.located.head;
    return this.quota.within(header.id, sessionLimitsOf(header, limits), (renew) => this.#make(uid, session, renew));
  }

  async #make(
    uid: string,
    { located, origin, rows }: NewRowSession<Segment>,
    renew: () => Promise<void>,
  ): Promise<StoredSession> {
    const { header } = located.head;
    const { id } = header;
    const first = positionOf(origin.at(-1)?.end ?? 0);
    const fixed = [String(this.ttlSeconds ?? ""), first, JSON.stringify(header), writeSegments(origin)];
    let gen = 0;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.index.mark(id, gen);
      const stamp = nextStamp({ uid, rev: 0, gen });
      const args = [uid, String(gen), stamp.text, ...fixed, writeHead(located.head, gen), ...argsOf(rows)];
      const [kind, answer] = await this.handle.run(CREATE, this.handle.names.all(id, uid), args);
      // If the client resent the script, it finds the session that the first send created.
      if (kind === "exists" && answer !== uid) throw sessionExists(id);
      if (kind !== "gen") {
        const segments = segmentsOf(origin, id, uid);
        return { ...located, stamp, marked: true, writtenMs: Date.now(), deletedAt: null, segments };
      }
      gen = Number(answer);
      await renew();
    }
    throw new SessionBusyError(id, "others that list sessions all the time");
  }

  #loadIfChanged(sessionId: string, stamp: string): Promise<readonly RedisReply[]> {
    return this.handle.run(LOAD_SESSION, this.handle.names.all(sessionId), [stamp]);
  }

  async #sessionOf(id: string, fields: readonly string[]): Promise<StoredSession> {
    const [k = "", h = "", hd = "", sg = "", del = "", deletedIn, deletedMs] = fields;
    const stamp = readStamp(k);
    const [gen, headMs, version, updatedAt] = JSON.parse(h) as HeadText;
    const segments = segmentsOf(readSegments(sg), id, stamp.uid);
    const header = freezeDeep(JSON.parse(hd) as SessionHeader);
    const { head, leafSeq, factsSeq } = await runAsync(this.#reader.headAt(segments, header, version));
    return {
      stamp,
      marked: gen === stamp.gen || deletedIn === String(stamp.gen),
      writtenMs: Math.max(headMs, Number(deletedMs ?? 0)),
      deletedAt: del === "" ? null : del,
      segments,
      // Before the first own append, the last row is inherited and has the time of another session.
      head: Object.freeze({ ...head, updatedAt }),
      leafSeq,
      factsSeq,
    };
  }

  async #findIn({ id, uid, end }: Segment, ids: readonly string[]): Promise<StoredRow[]> {
    const keys = this.handle.names.all(id, uid);
    const rows: StoredRow[] = [];
    for (let first = 0; first < ids.length; first += IDS_AT_ONCE) {
      const part = ids.slice(first, first + IDS_AT_ONCE);
      rows.push(...rowsOf(await this.handle.run(FIND, keys, [String(end), ...part])));
    }
    return rows;
  }
}
