import type { Found, StoredEntry, Wanted } from "../../session/append-plan.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { EMPTY_PATH, emptyHead, type PathSummary } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import { decodeHead, decodePath, type EntryState, type HeadPlace, settingsIn } from "../rows/entry-state.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { HEAD_WEIGHTS } from "../head-weight.ts";
import { LruCache } from "../lru-cache.ts";
import { BLOCK_ENTRIES } from "./schema.ts";
import { boundsOf, IN_SEGMENT, type Origin, segmentsOf } from "./segments.ts";
import { type Segment, segmentAt } from "../rows/segments.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

// More than the largest page of a listing, so that listing again finds every head here.
const CACHED_SESSIONS = 1024;

/** A session as it stood at one version. Its log only grows, so nothing of this is ever wrong, only behind. */
export interface LoadedSession extends HeadPlace {
  readonly key: number;
  readonly segments: readonly Segment[];
}

/** Which session, and how far its log goes. */
export interface SessionVersion {
  readonly id: string;
  readonly key: number;
  readonly version: number;
}

interface EntryRow {
  readonly seq: number;
  readonly id: string;
  readonly state: string;
  /** The state of the row that holds the facts, where it was fetched along. */
  readonly facts?: string | null;
}

/** A session's row, with the entry that is its own last one at the version asked for. */
interface SessionRow extends Origin {
  readonly updated_at: string;
  readonly header: string;
  readonly seq: number | null;
  readonly entry_id: string | null;
  readonly state: string | null;
  readonly facts: string | null;
}

interface StoredRow extends EntryRow {
  readonly body: string;
}

const ROW = "seq, id, state";

/** Reads heads and entries, and remembers the heads that were read or written last. */
export class SessionLog {
  readonly #handle: SqliteHandle;
  readonly #cache = new LruCache<string, LoadedSession>(CACHED_SESSIONS, HEAD_WEIGHTS);
  readonly #locate: SqliteStatement;
  readonly #locateAll: SqliteStatement;
  readonly #sessions: SqliteStatement;
  readonly #find: SqliteStatement;
  readonly #row: SqliteStatement;

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
    const last = "(SELECT seq FROM entries WHERE session_key = sessions.key ORDER BY seq DESC LIMIT 1)";
    this.#locate = handle.prepare(
      `SELECT key, coalesce(${last} + 1, origin_version) AS version FROM sessions WHERE id = ? AND deleted_at IS NULL`,
    );
    // A cross join, so that each id is looked up, and not all sessions for the ids. One row, as drivers take long for several.
    this.#locateAll = handle.prepare(
      `SELECT json_group_array(json_array(sessions.id, sessions.key, coalesce(${last} + 1, origin_version))) AS found
       FROM json_each(?) AS wanted CROSS JOIN sessions ON sessions.id = wanted.value WHERE deleted_at IS NULL`,
    );
    this.#sessions = handle.prepare(
      `SELECT sessions.key AS key, origin_key, origin_version, updated_at, header,
         entries.seq AS seq, entries.id AS entry_id, entries.state AS state, facts.state AS facts
       FROM json_each(?) AS wanted JOIN sessions ON sessions.key = wanted.value ->> 0
       LEFT JOIN entries ON entries.session_key = sessions.key AND entries.seq = wanted.value ->> 1
       LEFT JOIN entries AS facts ON facts.session_key = sessions.key AND facts.seq = entries.state ->> '$.facts'`,
    );
    this.#row = handle.prepare(`SELECT ${ROW} FROM entries WHERE session_key = ? AND seq = ?`);
    this.#find = handle.prepare(
      `SELECT ${ROW}, body FROM entries WHERE session_key = ? AND seq =
         (SELECT seq FROM entry_ids WHERE session_key = ? AND id = ? AND seq < ?)
       UNION ALL
       SELECT ${ROW}, body FROM entries WHERE ${IN_SEGMENT} AND id = ?
       LIMIT 1`,
    );
  }

  /** What is remembered of a session; it may be behind, and the session may be gone. */
  cached(sessionId: string): LoadedSession | undefined {
    return this.#cache.get(sessionId);
  }

  remember(session: LoadedSession): void {
    this.#cache.set(session.head.header.id, session);
  }

  forget(sessionId: string): void {
    this.#cache.delete(sessionId);
  }

  /** A live session as it stands now, or null. */
  load(sessionId: string): LoadedSession | null {
    const row = this.#locate.get<Omit<SessionVersion, "id">>([sessionId]);
    return row === undefined ? null : this.loadVersion({ id: sessionId, key: row.key, version: row.version });
  }

  /** Live sessions as they all stand at one moment, by their ids. */
  loadAll(sessionIds: readonly string[]): ReadonlyMap<string, LoadedSession> {
    const row = this.#locateAll.get<{ readonly found: string }>([JSON.stringify(sessionIds)]);
    const found = JSON.parse(row?.found ?? "[]") as [id: string, key: number, version: number][];
    const sessions = this.loadVersions(found.map(([id, key, version]) => ({ id, key, version })));
    return new Map(sessions.map((session) => [session.head.header.id, session]));
  }

  /** A session, live or deleted, at a version; null when it has been purged. */
  loadVersion(wanted: SessionVersion): LoadedSession | null {
    return this.loadVersions([wanted])[0] ?? null;
  }

  /** Sessions, live or deleted, each at a version; those that have been purged are left out. */
  loadVersions(wanted: readonly SessionVersion[]): LoadedSession[] {
    const missing = wanted.filter(({ id, key, version }) => !isAt(this.#cache.get(id), key, version));
    const fetched = new Map(this.#fetch(missing).map((row) => [row.key, row]));
    return wanted.flatMap(({ id, key, version }) => {
      const known = this.#cache.get(id);
      const row = fetched.get(key);
      if (row === undefined) return known !== undefined && isAt(known, key, version) ? known : [];
      const loaded = this.#load(row, version, known?.key === key ? known : undefined);
      this.remember(loaded);
      return loaded;
    });
  }

  /** The head after the first `version` entries, and the rows that hold its parts. */
  headAt(segments: readonly Segment[], header: SessionHeader, version: number): HeadPlace {
    if (version === 0) return { head: freezeDeep(emptyHead(header)), leafSeq: null, factsSeq: null };
    return this.#headOf(segments, header, this.#rowAt(segments, version - 1));
  }

  /** The id of the entry at a position. */
  idAt(segments: readonly Segment[], seq: number): string {
    return this.#rowAt(segments, seq).id;
  }

  /** What a plan wants to know of the session, as far as it was loaded. */
  look(session: LoadedSession, { ids, settings }: Wanted): Found {
    const entries = new Map<string, StoredEntry>();
    for (const id of ids) {
      const stored = this.find(session, id);
      if (stored !== undefined) entries.set(id, stored);
    }
    return { entries, settings: new Map(settings.map((seq) => [seq, this.settingsAt(session, seq)])) };
  }

  /** The settings that the row at a position holds. */
  settingsAt({ segments }: Pick<LoadedSession, "segments">, seq: number): SettingsNode {
    return settingsIn(this.#stateAt(segments, seq), seq);
  }

  /** An entry of the session, as far as it was loaded, by its id. */
  find({ segments, head }: LoadedSession, id: string): StoredEntry | undefined {
    const row = this.#findRow(segments, id, head.version);
    if (row === undefined) return undefined;
    return { entry: JSON.parse(row.body) as Entry, path: this.#pathOf(segments, row) };
  }

  /** The entry alone, which costs less than with its path. */
  findEntry({ segments, head }: LoadedSession, id: string): Entry | null {
    const row = this.#findRow(segments, id, head.version);
    return row === undefined ? null : (JSON.parse(row.body) as Entry);
  }

  #fetch(wanted: readonly SessionVersion[]): SessionRow[] {
    if (wanted.length === 0) return [];
    return this.#sessions.all<SessionRow>([JSON.stringify(wanted.map(({ key, version }) => [key, version - 1]))]);
  }

  #load(row: SessionRow, version: number, known: LoadedSession | undefined): LoadedSession {
    const { key, seq, entry_id: id, state, facts } = row;
    const header = known?.head.header ?? freezeDeep(JSON.parse(row.header) as SessionHeader);
    const segments = known?.segments ?? segmentsOf(this.#handle, row);
    if (seq !== null && id !== null && state !== null) {
      return { key, segments, ...this.#headOf(segments, header, { seq, id, state, facts }) };
    }
    const place = this.headAt(segments, header, version);
    // Nothing was appended yet, so that the last row, if any, tells another session's time.
    return { key, segments, ...place, head: Object.freeze({ ...place.head, updatedAt: row.updated_at }) };
  }

  #headOf(segments: readonly Segment[], header: SessionHeader, row: EntryRow): HeadPlace {
    const state = JSON.parse(row.state) as EntryState;
    const leafSeq = state.leaf === undefined ? row.seq : state.leaf;
    const leaf = leafSeq === null ? null : leafSeq === row.seq ? row : this.#rowAt(segments, leafSeq);
    const path = leaf === null ? EMPTY_PATH : (this.#pathOf(segments, leaf) ?? EMPTY_PATH);
    const factsSeq = typeof state.facts === "object" ? row.seq : (state.facts ?? null);
    const facts = typeof state.facts === "number" ? this.#factsAt(segments, state.facts, row).facts : state.facts;
    const head = decodeHead(row.seq + 1, state, { header, leafId: leaf?.id ?? null, path, facts });
    return { head, leafSeq, factsSeq };
  }

  #findRow(segments: readonly Segment[], id: string, version: number): StoredRow | undefined {
    for (let index = segments.length - 1; index >= 0; index--) {
      const { key, start, end } = segments[index] as Segment;
      const bound = Math.min(end, version);
      if (bound <= start) continue;
      // Entries after the last whole block are not in the index of ids yet.
      const rest = boundsOf({ key, start: bound - (bound % BLOCK_ENTRIES), end: bound });
      const row = this.#find.get<StoredRow>([key, key, id, bound, ...rest, id]);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  #pathOf(segments: readonly Segment[], row: EntryRow): PathSummary | null {
    const settingsAt = (seq: number): SettingsNode => this.settingsAt({ segments }, seq);
    return decodePath(JSON.parse(row.state) as EntryState, row.seq, settingsAt);
  }

  #factsAt(segments: readonly Segment[], seq: number, { facts }: EntryRow): EntryState {
    return typeof facts === "string" ? (JSON.parse(facts) as EntryState) : this.#stateAt(segments, seq);
  }

  #stateAt(segments: readonly Segment[], seq: number): EntryState {
    return JSON.parse(this.#rowAt(segments, seq).state) as EntryState;
  }

  #rowAt(segments: readonly Segment[], seq: number): EntryRow {
    const { key } = segmentAt(segments, seq);
    const row = this.#row.get<EntryRow>([key, seq]);
    if (row !== undefined) return row;
    throw new SessionError(
      "STORE_FAILED",
      `The database ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or the database is damaged.`,
    );
  }
}

function isAt(session: LoadedSession | undefined, key: number, version: number): boolean {
  return session?.key === key && session.head.version === version;
}
