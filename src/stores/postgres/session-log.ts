import { type Found, NOTHING_FOUND, type StoredEntry, type Wanted } from "../../session/append-plan.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { EMPTY_PATH, emptyHead, type PathSummary } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { decodeHead, decodePath, type EntryState, type HeadPlace, settingsIn } from "../rows/entry-state.ts";
import { HEAD_WEIGHTS } from "../head-weight.ts";
import { LruCache } from "../lru-cache.ts";
import { clipSegments, type Segment, segmentAt } from "../rows/segments.ts";
import { fromJsonb } from "./jsonb-text.ts";
import type { PostgresHandle, Reader } from "./postgres-handle.ts";
import { IS_LIVE, type LoadedSession, SESSION_COLUMNS, type SessionRow, sessionOf, sessionsIn } from "./session-row.ts";

// More than the largest page of a listing, so that listing again finds every head here.
const CACHED_SESSIONS = 1024;

interface StateRow {
  readonly seq: string;
  readonly id: string;
  readonly state: string;
}

interface EntryRow extends StateRow {
  readonly body: string;
}

type SettingsAt = ReadonlyMap<number, SettingsNode>;

/** Reads heads and entries, and remembers the heads that were read or written last. */
export class SessionLog {
  readonly #handle: PostgresHandle;
  readonly #cache = new LruCache<string, LoadedSession>(CACHED_SESSIONS, HEAD_WEIGHTS);

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
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
  async load(sessionId: string): Promise<LoadedSession | null> {
    const row = await this.row(sessionId, this.#handle, "");
    return row === null ? null : this.sessionOf(row);
  }

  /** Live sessions as they stand now, by their ids. */
  async loadAll(sessionIds: readonly string[]): Promise<ReadonlyMap<string, LoadedSession>> {
    const from = sessionsIn(this.#handle.schema);
    const wanted = "id = ANY (ARRAY (SELECT json_array_elements_text($1::text::json)))";
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${from} WHERE ${wanted} AND ${IS_LIVE}`;
    const rows = await this.#handle.read<SessionRow>(sql, [JSON.stringify(sessionIds)]);
    return new Map(rows.map((row) => [row.id, this.sessionOf(row)]));
  }

  /** The row of a live session, or null. `lock` is what keeps others from it until the transaction ends. */
  async row(sessionId: string, reader: Reader, lock: string): Promise<SessionRow | null> {
    const from = sessionsIn(this.#handle.schema);
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${from} WHERE id = $1 AND ${IS_LIVE} ${lock}`;
    return (await reader.read<SessionRow>(sql, [sessionId]))[0] ?? null;
  }

  /** The session of a row. */
  sessionOf(row: SessionRow): LoadedSession {
    const session = sessionOf(row, this.#cache.get(row.id));
    this.remember(session);
    return session;
  }

  /** The head after the first `version` entries, and the entries that hold its parts. */
  async headAt(
    reader: Reader,
    segments: readonly Segment[],
    header: SessionHeader,
    version: number,
  ): Promise<HeadPlace & { readonly last: Pick<SessionRow, "last_id" | "state"> }> {
    if (version === 0) {
      const last = { last_id: null, state: null };
      return { head: freezeDeep(emptyHead(header)), leafSeq: null, factsSeq: null, last };
    }
    const last = await this.#stateAt(reader, segments, version - 1);
    const seq = version - 1;
    const state = JSON.parse(last.state) as EntryState;
    const leafSeq = state.leaf === undefined ? seq : state.leaf;
    const leaf = leafSeq === null ? null : leafSeq === seq ? last : await this.#stateAt(reader, segments, leafSeq);
    const path = leaf === null ? EMPTY_PATH : await this.#pathOf(reader, segments, leaf);
    const factsSeq = typeof state.facts === "object" ? seq : (state.facts ?? null);
    const facts =
      typeof state.facts === "number"
        ? (JSON.parse((await this.#stateAt(reader, segments, state.facts)).state) as EntryState).facts
        : state.facts;
    const head = decodeHead(version, state, { header, leafId: leaf?.id ?? null, path: path ?? EMPTY_PATH, facts });
    return { head, leafSeq, factsSeq, last: { last_id: last.id, state: last.state } };
  }

  /** What a plan wants to know of a session, as far as it was loaded. */
  async look(session: LoadedSession, { ids, settings }: Wanted, reader: Reader): Promise<Found> {
    const entries = ids.length === 0 ? NOTHING_FOUND.entries : await this.find(session, ids, reader);
    const nodes = new Map<number, SettingsNode>();
    for (const seq of settings) nodes.set(seq, await this.settingsAt(session.segments, seq, reader));
    return { entries, settings: nodes };
  }

  /** The settings that the row at a position holds. */
  async settingsAt(segments: readonly Segment[], seq: number, reader: Reader = this.#handle): Promise<SettingsNode> {
    return settingsIn(JSON.parse((await this.#stateAt(reader, segments, seq)).state) as EntryState, seq);
  }

  /** Entries of a session, as far as it was loaded, by their ids, each with its path. */
  async find(session: LoadedSession, ids: readonly string[], reader: Reader): Promise<Map<string, StoredEntry>> {
    const rows = await this.#findRows(session, ids, reader);
    const settings = await this.#settingsOf(reader, session.segments, rows);
    return new Map(rows.map((row) => [row.id, { entry: entryOf(row), path: pathOf(row, settings) }]));
  }

  /** An entry alone, which costs less than with its path. */
  async findEntry(session: LoadedSession, id: string, reader: Reader = this.#handle): Promise<Entry | null> {
    const [row] = await this.#findRows(session, [id], reader);
    return row === undefined ? null : entryOf(row);
  }

  /** The path of a node, or null. */
  async findPath(session: LoadedSession, id: string): Promise<PathSummary | null> {
    const [row] = await this.#findRows(session, [id], this.#handle);
    return row === undefined ? null : this.#pathOf(this.#handle, session.segments, row);
  }

  #findRows({ segments, head }: LoadedSession, ids: readonly string[], reader: Reader): Promise<readonly EntryRow[]> {
    const columns = "seq, id, state, body::text AS body";
    const from = `${this.#handle.schema}.entries`;
    const parts = clipSegments(segments, 0, head.version);
    const [only, ...others] = parts;
    if (only !== undefined && others.length === 0 && ids.length === 1) {
      return reader.read(`SELECT ${columns} FROM ${from} WHERE session_key = $1 AND id = $2 AND seq < $3`, [
        only.key,
        ids[0] as string,
        only.end,
      ]);
    }
    // One look into the index for each id and part; a join might read the whole log instead.
    return reader.read(
      `SELECT found.* FROM json_to_recordset($1::text::json) AS part (key bigint, "end" bigint)
       CROSS JOIN json_array_elements_text($2::text::json) AS wanted (id)
       CROSS JOIN LATERAL (
         SELECT ${columns} FROM ${from}
         WHERE session_key = part.key AND entries.id = wanted.id AND seq < part."end" LIMIT 1
       ) AS found`,
      [JSON.stringify(parts), JSON.stringify(ids)],
    );
  }

  async #pathOf(reader: Reader, segments: readonly Segment[], row: StateRow): Promise<PathSummary | null> {
    return pathOf(row, await this.#settingsOf(reader, segments, [row]));
  }

  /** The settings that the states of some rows only refer to. */
  async #settingsOf(reader: Reader, segments: readonly Segment[], rows: readonly StateRow[]): Promise<SettingsAt> {
    const settings = new Map<number, SettingsNode>();
    for (const { state } of rows) {
      const { settings: seq } = JSON.parse(state) as EntryState;
      if (typeof seq !== "number" || settings.has(seq)) continue;
      settings.set(seq, await this.settingsAt(segments, seq, reader));
    }
    return settings;
  }

  async #stateAt(reader: Reader, segments: readonly Segment[], seq: number): Promise<StateRow> {
    const [row] = await reader.read<StateRow>(
      `SELECT seq, id, state FROM ${this.#handle.schema}.entries WHERE session_key = $1 AND seq = $2`,
      [segmentAt(segments, seq).key, seq],
    );
    if (row !== undefined) return row;
    throw new SessionError(
      "STORE_FAILED",
      `The PostgreSQL database ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or the database is damaged.`,
    );
  }
}

function entryOf({ body }: EntryRow): Entry {
  return fromJsonb(body) as Entry;
}

function pathOf({ seq, state }: StateRow, settings: SettingsAt): PathSummary | null {
  return decodePath(JSON.parse(state) as EntryState, Number(seq), (place) => {
    const found = settings.get(place);
    if (found === undefined) throw new Error(`The settings of entry ${seq} were not fetched.`);
    return found;
  });
}
