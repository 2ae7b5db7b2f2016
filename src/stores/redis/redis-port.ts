import type { Entry } from "../../session/entry.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type Asking, runLater } from "../rows/asking.ts";
import type { EncodedPlan, NewRow } from "../rows/encode-plan.ts";
import type { CommitConditions, MakeLimits, NewSession, RowPort, StateRow, StoredRow } from "../rows/row-port.ts";
import { RowReader } from "../rows/row-reader.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { LeaseScripts } from "./lease-scripts.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { readSegments, type Segment, segmentsOf } from "./segments.ts";
import type { SessionIndex } from "./session-index.ts";
import type { SessionMaker } from "./session-maker.ts";
import { APPEND, FIND, LOAD_SESSION, ROW_AT } from "./session-scripts.ts";
import { type HeadText, nextStamp, readStamp, type StoredSession, writeHead } from "./stored-session.ts";

/** What a port needs of its store. */
export interface PortParts {
  readonly cache: SessionCache<StoredSession>;
  readonly index: SessionIndex;
  readonly leases: LeaseScripts;
  readonly maker: SessionMaker;
  readonly ttlSeconds: number | undefined;
}

const IDS_AT_ONCE = 1000;

/**
 * The rows of a Redis server. Nothing is ever locked: a script writes an append if the session is as it was planned on.
 * A client may send again what was not answered, so that whoever is refused cannot be sure that nothing was written.
 */
export class RedisPort implements RowPort<Segment, StoredSession> {
  readonly checksIds = true;
  readonly #handle: RedisHandle;
  readonly #parts: PortParts;
  readonly #reader: RowReader<Segment, StoredSession>;

  constructor(handle: RedisHandle, parts: PortParts) {
    this.#handle = handle;
    this.#parts = parts;
    this.#reader = new RowReader(this, parts.cache);
  }

  async load(sessionId: string, _known?: StoredSession, deleted = false): Promise<StoredSession | null> {
    const session = await this.loadAny(sessionId);
    return session !== null && (session.deletedAt !== null) === deleted ? session : null;
  }

  /** A session as it stands now, deleted or not; null when there is none. */
  async loadAny(sessionId: string): Promise<StoredSession | null> {
    const { cache } = this.#parts;
    const known = cache.get(sessionId);
    const [kind, ...fields] = await this.#loadAfter(sessionId, known?.stamp.text ?? "");
    if (kind === "same") return known as StoredSession;
    cache.forget(sessionId);
    if (kind === "none") return null;
    try {
      const session = await this.#sessionOf(sessionId, fields as string[]);
      cache.remember(session);
      return session;
    } catch (error) {
      // Its rows may have been purged since; what the session says now is what counts.
      const [now] = await this.#loadAfter(sessionId, fields[0] as string);
      if (now === "same") throw error;
      return this.loadAny(sessionId);
    }
  }

  async rowAt({ id, uid }: Segment, seq: number): Promise<StateRow | undefined> {
    const [text] = await this.#handle.run(ROW_AT, this.#handle.names.all(id, uid), [placeOf(seq)]);
    return text === undefined ? undefined : rowOf(seq, text as string);
  }

  async findRows({ segments, head }: StoredSession, ids: readonly string[]): Promise<StoredRow[]> {
    const found: StoredRow[] = [];
    let missing = ids;
    for (let index = segments.length - 1; index >= 0 && missing.length > 0; index--) {
      const segment = segments[index] as Segment;
      const end = Math.min(segment.end, head.version);
      if (end <= segment.start) continue;
      const rows = await this.#findIn({ ...segment, end }, missing);
      found.push(...rows);
      const there = new Set(rows.map((row) => row.id));
      missing = missing.filter((each) => !there.has(each));
    }
    return found;
  }

  async page({ id, uid, start, end }: Segment, count: number, reverse: boolean): Promise<readonly string[]> {
    const key = this.#handle.names.entries(id, uid);
    const [first, last] = [placeOf(start), placeOf(end - 1)];
    const range = reverse ? ["XREVRANGE", key, last, first] : ["XRANGE", key, first, last];
    const reply = await this.#handle.command(key, [...range, "COUNT", String(count)]);
    return (reply as StreamReply).map(([, [, text]]) => text.slice(text.lastIndexOf("\n") + 1));
  }

  leaseToken({ head }: StoredSession): Promise<number | null> {
    return this.#parts.leases.tokenOf(head.header.id);
  }

  async commit(
    session: StoredSession,
    { rows, place }: EncodedPlan,
    { leaseToken, idsUnseen }: CommitConditions,
  ): Promise<StoredSession | "behind" | "unsure"> {
    const { stamp: before, segments, deletedAt } = session;
    const { id } = session.head.header;
    const { index, leases, ttlSeconds } = this.#parts;
    if (deletedAt !== null) return "behind";
    if (!session.marked) await index.mark(id, before.gen);
    const stamp = nextStamp(before);
    const { names } = this.#handle;
    const [written] = await this.#handle.run(APPEND, names.all(id, before.uid), [
      ...[before.text, stamp.text, writeHead(place.head, stamp.gen), names.channel(id), placeOf(session.head.version)],
      ...[String(leaseToken ?? ""), leases.clockArg(), idsUnseen ? "1" : "", String(ttlSeconds ?? "")],
      ...argsOf(rows),
    ]);
    if (written !== 1) return "unsure";
    const { head, leafSeq, factsSeq } = place;
    return { stamp, marked: true, writtenMs: Date.now(), deletedAt, segments, head, leafSeq, factsSeq };
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
      `The Redis server ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or keys were removed.`,
    );
  }

  #loadAfter(sessionId: string, stamp: string): Promise<readonly RedisReply[]> {
    return this.#handle.run(LOAD_SESSION, this.#handle.names.all(sessionId), [stamp]);
  }

  async #sessionOf(id: string, fields: readonly string[]): Promise<StoredSession> {
    const [k = "", h = "", hd = "", sg = "", del = "", deletedIn, deletedMs] = fields;
    const stamp = readStamp(k);
    const [gen, headMs, version, updatedAt] = JSON.parse(h) as HeadText;
    const segments = segmentsOf(readSegments(sg), id, stamp.uid);
    const header = freezeDeep(JSON.parse(hd) as SessionHeader);
    const { head, leafSeq, factsSeq } = await runLater(this.#reader.headAt(segments, header, version));
    return {
      stamp,
      marked: gen === stamp.gen || deletedIn === String(stamp.gen),
      writtenMs: Math.max(headMs, Number(deletedMs ?? 0)),
      deletedAt: del === "" ? null : del,
      segments,
      // Of a session that was not appended to yet, the last row, if any, tells another session's time.
      head: Object.freeze({ ...head, updatedAt }),
      leafSeq,
      factsSeq,
    };
  }

  async #findIn({ id, uid, end }: Segment, ids: readonly string[]): Promise<StoredRow[]> {
    const keys = this.#handle.names.all(id, uid);
    const rows: StoredRow[] = [];
    for (let first = 0; first < ids.length; first += IDS_AT_ONCE) {
      const part = ids.slice(first, first + IDS_AT_ONCE);
      rows.push(...rowsOf(await this.#handle.run(FIND, keys, [String(end), ...part])));
    }
    return rows;
  }
}

type StreamReply = readonly (readonly [place: string, fields: readonly [string, string]])[];

/** Where in a stream a position is; a stream has nothing at 0. */
export function placeOf(seq: number): string {
  return String(seq + 1);
}

/** Rows as they are handed to a script. One value costs the server less than three. No part has a line break in it. */
export function argsOf(rows: readonly NewRow[]): string[] {
  return rows.flatMap(({ id, state, body }) => [id, `${state}\n${JSON.stringify(id)}\n${body}`]);
}

/** The rows that a stream gave out. */
export function rowsOf(reply: RedisReply): StoredRow[] {
  return (reply as StreamReply).map(([place, [, text]]) => rowOf(Number.parseInt(place, 10) - 1, text));
}

/** Rows of earlier layouts have their id only in the entry. */
function rowOf(seq: number, text: string): StoredRow {
  const [state = "", second = "", body = second] = text.split("\n");
  const known = JSON.parse(second) as string | Entry;
  return { seq, id: typeof known === "string" ? known : known.id, state, body };
}
