import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { type Asking, runLater } from "../rows/asking.ts";
import type { EncodedPlan } from "../rows/encode-plan.ts";
import { sameFacts } from "../rows/entry-state.ts";
import type { CommitConditions, MakeLimits, NewSession, RowPort, StoredRow } from "../rows/row-port.ts";
import { CACHED_SESSIONS } from "../rows/session-cache.ts";
import type { KeyNames } from "./key-names.ts";
import type { LeaseScripts } from "./lease-scripts.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { Segment } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import { placeOf, type SessionLog } from "./session-log.ts";
import type { SessionMaker } from "./session-maker.ts";
import { APPEND } from "./session-scripts.ts";
import { stageRows } from "./staged-rows.ts";
import {
  nextStamp,
  settingsOf,
  type Stamp,
  type StoredSession,
  writeFacts,
  writeHead,
  writeSettings,
} from "./stored-session.ts";

/** What a port needs of its store. */
export interface PortParts {
  readonly handle: RedisHandle;
  readonly names: KeyNames;
  readonly log: SessionLog;
  readonly index: SessionIndex;
  readonly leases: LeaseScripts;
  readonly maker: SessionMaker;
  readonly ttlSeconds: number | undefined;
}

/** What a script is told of where a session is. */
interface SessionNames {
  readonly keys: readonly string[];
  readonly channel: string;
}

/**
 * The rows of a Redis server. Nothing is ever locked: a script writes an append if the session is as it was planned on.
 * A client may send again what was not answered, so that whoever is refused cannot be sure that nothing was written.
 */
export class RedisPort implements RowPort<Segment, StoredSession> {
  readonly checksIds = true;
  readonly #parts: PortParts;
  /** Key names by session, cached: V8 flattens a concatenated string on every send, but one that was sent only once. */
  readonly #names = new LruCache<string, SessionNames>(CACHED_SESSIONS);

  constructor(parts: PortParts) {
    this.#parts = parts;
  }

  load(sessionId: string): Promise<StoredSession | null> {
    return this.#parts.log.load(sessionId);
  }

  rowAt(part: Segment, seq: number): Promise<StoredRow | undefined> {
    return this.#parts.log.rowAt(part, seq);
  }

  findRows(session: StoredSession, ids: readonly string[]): Promise<readonly StoredRow[]> {
    return this.#parts.log.findRows(session, ids);
  }

  async page(part: Segment, count: number, reverse: boolean): Promise<readonly string[]> {
    return (await this.#parts.log.rows(part, count, reverse)).map(({ body }) => body);
  }

  leaseToken({ head }: StoredSession): Promise<number | null> {
    return this.#parts.leases.tokenOf(head.header.id);
  }

  async commit(
    session: StoredSession,
    plan: EncodedPlan,
    conditions: CommitConditions,
  ): Promise<StoredSession | "behind" | "unsure"> {
    const { stamp: before } = session;
    if (session.deletedAt !== null) return "behind";
    if (!session.marked) await this.#parts.index.mark(session.head.header.id, before.gen);
    const stamp = nextStamp(before);
    const { handle, names } = this.#parts;
    const { keys, channel } = this.#namesOf(session);
    const staged = await stageRows(handle, names, session.head.header.id, plan.rows);
    const written = await handle.evaluate(
      APPEND,
      [...keys, ...staged.keys],
      [
        ...[before.text, stamp.text, writeHead(plan.place, stamp.gen), channel, placeOf(session.head.version)],
        ...[JSON.stringify(this.#optionsOf(session.head, plan.place.head, conditions)), ...staged.args],
      ],
    );
    if (written === 1) return movedTo(session, plan, stamp);
    await staged.discard();
    return "unsure";
  }

  locked<T>(steps: (port: RedisPort) => Asking<T>): Promise<T> {
    return runLater(steps(this));
  }

  make(session: NewSession<Segment>, limits: MakeLimits): Promise<StoredSession> {
    return this.#parts.maker.make(session, limits);
  }

  missing(seq: number): SessionError {
    return new SessionError(
      "STORE_FAILED",
      `The Redis server ${this.#parts.handle.place} misses entry ${seq} of a session; it was purged just now, or keys were removed.`,
    );
  }

  #namesOf({ stamp: { uid }, head }: StoredSession): SessionNames {
    const known = this.#names.get(uid);
    if (known !== undefined) return known;
    const { names } = this.#parts;
    const { id } = head.header;
    const log = [names.entries(id, uid), names.positions(id, uid)];
    const rest = [names.lease(id), names.forks(id, uid), names.checkpoints(id, uid)];
    const made = { keys: [names.session(id), ...log, ...rest], channel: names.channel(id) };
    this.#names.set(uid, made);
    return made;
  }

  /** What few appends need, for the script. */
  #optionsOf(
    before: SessionHead,
    after: SessionHead,
    { leaseToken, idsUnseen }: CommitConditions,
  ): Record<string, string | boolean> {
    const { leases, ttlSeconds } = this.#parts;
    const sameSettings = settingsOf(before) === settingsOf(after);
    return {
      ...(idsUnseen && { unseen: true }),
      ...(leaseToken !== null && { token: String(leaseToken), clock: leases.clockArg() }),
      ...(ttlSeconds !== undefined && { ttl: String(ttlSeconds) }),
      ...(!sameFacts(before, after) && { ff: writeFacts(after) }),
      ...(!sameSettings && { ss: settingsOf(after), set: writeSettings(after) }),
    };
  }
}

function movedTo({ deletedAt, segments }: StoredSession, { place }: EncodedPlan, stamp: Stamp): StoredSession {
  const { head, leafSeq, factsSeq } = place;
  return { stamp, marked: true, deletedAt, segments, head, leafSeq, factsSeq };
}
