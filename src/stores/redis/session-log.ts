import { type Found, NOTHING_FOUND, type StoredEntry, type Wanted } from "../../session/append-plan.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { EMPTY_PATH, emptyHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import { decodeHead, decodePath, type EntryState, type HeadPlace, settingsIn } from "../rows/entry-state.ts";
import { HEAD_WEIGHTS } from "../head-weight.ts";
import { LruCache } from "../lru-cache.ts";
import type { KeyNames } from "./key-names.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { segmentAt } from "../rows/segments.ts";
import type { Segment } from "./segments.ts";
import { FIND, LOAD_SESSION } from "./session-scripts.ts";
import { readSession, settingsOf, type StoredSession } from "./stored-session.ts";

/** More than the largest page of a listing, so that listing again finds every head here. */
export const CACHED_SESSIONS = 1024;
const IDS_AT_ONCE = 1000;

/** A row of a log: an entry, and what is written beside it. */
export interface EntryRow {
  readonly seq: number;
  readonly body: string;
  /** As JSON, because most readers do not need it. */
  readonly state: string;
}

/** Reads sessions and entries, and remembers the sessions that were read or written last. */
export class SessionLog {
  readonly #handle: RedisHandle;
  readonly #names: KeyNames;
  readonly #cache = new LruCache<string, StoredSession>(CACHED_SESSIONS, HEAD_WEIGHTS);

  constructor(handle: RedisHandle, names: KeyNames) {
    this.#handle = handle;
    this.#names = names;
  }

  /** What is remembered of a session; it may be behind, and the session may be gone. */
  cached(sessionId: string): StoredSession | undefined {
    return this.#cache.get(sessionId);
  }

  remember(session: StoredSession): void {
    this.#cache.set(session.head.header.id, session);
  }

  forget(sessionId: string): void {
    this.#cache.delete(sessionId);
  }

  /** A session as it stands now, deleted or not; null when there is none. */
  async loadAny(sessionId: string): Promise<StoredSession | null> {
    const known = this.#cache.get(sessionId);
    const args = known === undefined ? ["", "", ""] : knownArgs(known);
    const reply = await this.#handle.run(LOAD_SESSION, [this.#names.session(sessionId)], args);
    return this.accept(sessionId, reply, known);
  }

  /** A live session as it stands now, or null. */
  async load(sessionId: string): Promise<StoredSession | null> {
    const session = await this.loadAny(sessionId);
    return session?.deletedAt === null ? session : null;
  }

  /** Takes in what the server says of a session. */
  accept(sessionId: string, reply: readonly RedisReply[], known: StoredSession | undefined): StoredSession | null {
    const session = readSession(sessionId, reply, known);
    if (session === null) this.#cache.delete(sessionId);
    else this.#cache.set(sessionId, session);
    return session;
  }

  /** What a plan wants to know of a session, as far as it was loaded. */
  async look(session: StoredSession, { ids, settings }: Wanted): Promise<Found> {
    const entries = ids.length === 0 ? NOTHING_FOUND.entries : await this.find(session, ids);
    const nodes = await Promise.all(settings.map((seq) => this.settingsAt(session.segments, seq)));
    return { entries, settings: new Map(nodes.map((node) => [node.seq, node])) };
  }

  /** The settings that the row at a position holds. */
  async settingsAt(segments: readonly Segment[], seq: number): Promise<SettingsNode> {
    return settingsIn(stateOf(await this.rowAt(segments, seq)), seq);
  }

  /** Entries of the session, as far as it was loaded, by their ids; those it does not have are left out. */
  async find(session: StoredSession, ids: readonly string[]): Promise<Map<string, StoredEntry>> {
    const rows = await this.#findRows(session, ids);
    const settings = await this.#settingsFor(session.segments, rows.map(stateOf));
    return new Map(
      rows.map((row) => {
        const entry = JSON.parse(row.body) as Entry;
        return [entry.id, { entry, path: decodePath(stateOf(row), row.seq, (at) => settings.get(at) as SettingsNode) }];
      }),
    );
  }

  /** The entry alone, which costs less than with its path. */
  async findEntry(session: StoredSession, id: string): Promise<Entry | null> {
    const [row] = await this.#findRows(session, [id]);
    return row === undefined ? null : (JSON.parse(row.body) as Entry);
  }

  /** The head after the first `version` entries, and where its parts are. */
  async headAt(segments: readonly Segment[], header: SessionHeader, version: number): Promise<HeadPlace> {
    if (version === 0) return { head: freezeDeep(emptyHead(header)), leafSeq: null, factsSeq: null };
    const row = await this.rowAt(segments, version - 1);
    const state = stateOf(row);
    const leafSeq = state.leaf === undefined ? row.seq : state.leaf;
    const factsSeq = typeof state.facts === "object" ? row.seq : (state.facts ?? null);
    const leaf = leafSeq === null ? null : leafSeq === row.seq ? row : await this.rowAt(segments, leafSeq);
    const facts =
      typeof state.facts === "number" ? stateOf(await this.rowAt(segments, state.facts)).facts : state.facts;
    const settings = await this.#settingsFor(segments, leaf === null ? [] : [stateOf(leaf)]);
    const path = leaf === null ? null : decodePath(stateOf(leaf), leaf.seq, (at) => settings.get(at) as SettingsNode);
    const leafId = leaf === null ? null : (JSON.parse(leaf.body) as Entry).id;
    const head = decodeHead(version, state, { header, leafId, path: path ?? EMPTY_PATH, facts });
    return { head, leafSeq, factsSeq };
  }

  /** The row at a position. */
  async rowAt(segments: readonly Segment[], seq: number): Promise<EntryRow> {
    const { id, uid } = segmentAt(segments, seq);
    const key = this.#names.entries(id, uid);
    const [row] = rowsOf(await this.#handle.command(key, ["XRANGE", key, placeOf(seq), placeOf(seq)]));
    if (row !== undefined) return row;
    throw new SessionError(
      "STORE_FAILED",
      `The Redis server ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or keys were removed.`,
    );
  }

  /** Some rows of a part of a log, in the order asked for. */
  async rows({ id, uid, start, end }: Segment, count: number, reverse: boolean): Promise<EntryRow[]> {
    const key = this.#names.entries(id, uid);
    const [first, last] = [placeOf(start), placeOf(end - 1)];
    const range = reverse ? ["XREVRANGE", key, last, first] : ["XRANGE", key, first, last];
    return rowsOf(await this.#handle.command(key, [...range, "COUNT", String(count)]));
  }

  async #findRows({ segments, head }: StoredSession, ids: readonly string[]): Promise<EntryRow[]> {
    const found: EntryRow[] = [];
    let missing = ids;
    for (let index = segments.length - 1; index >= 0 && missing.length > 0; index--) {
      const { id, uid, start, end } = segments[index] as Segment;
      const bound = Math.min(end, head.version);
      if (bound <= start) continue;
      const rows = await this.#findIn(id, uid, bound, missing);
      found.push(...rows);
      const known = new Set(rows.map(({ body }) => (JSON.parse(body) as Entry).id));
      missing = missing.filter((each) => !known.has(each));
    }
    return found;
  }

  async #findIn(id: string, uid: string, bound: number, ids: readonly string[]): Promise<EntryRow[]> {
    const keys = [this.#names.positions(id, uid), this.#names.entries(id, uid)];
    const rows: EntryRow[] = [];
    for (let first = 0; first < ids.length; first += IDS_AT_ONCE) {
      const part = ids.slice(first, first + IDS_AT_ONCE);
      rows.push(...rowsOf(await this.#handle.run(FIND, keys, [String(bound), ...part])));
    }
    return rows;
  }

  /** The settings that rows point to, by the position of the row that holds them. */
  async #settingsFor(segments: readonly Segment[], states: readonly EntryState[]): Promise<Map<number, SettingsNode>> {
    const wanted = new Set(states.flatMap(({ settings }) => (typeof settings === "number" ? settings : [])));
    const nodes = await Promise.all([...wanted].map((seq) => this.settingsAt(segments, seq)));
    return new Map(nodes.map((node) => [node.seq, node]));
  }
}

/** What tells the server how far a session is known. */
export function knownArgs({ stamp, head }: StoredSession): [stamp: string, uid: string, ss: string] {
  return [stamp.text, stamp.uid, settingsOf(head)];
}

/** Where in a stream a position is; a stream has nothing at 0. */
export function placeOf(seq: number): string {
  return Number.isFinite(seq) ? String(seq + 1) : "+";
}

/** A row as it stands in a stream: one value costs the server less than two. Neither part has a line break in it. */
export function writeRow({ state, body }: Pick<EntryRow, "state" | "body">): string {
  return `${state}\n${body}`;
}

function stateOf({ state }: EntryRow): EntryState {
  return JSON.parse(state) as EntryState;
}

function rowsOf(reply: RedisReply): EntryRow[] {
  return (reply as readonly [string, readonly [string, string]][]).map(([place, [, text]]) => {
    const at = text.indexOf("\n");
    return { seq: Number.parseInt(place, 10) - 1, body: text.slice(at + 1), state: text.slice(0, at) };
  });
}
