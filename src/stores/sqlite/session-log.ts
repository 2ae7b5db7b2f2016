import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionHeader } from "../../session/header.ts";
import { runNow } from "../rows/asking.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { RowReader } from "../rows/row-reader.ts";
import type { Segment } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { type Origin, segmentsOf } from "./segments.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

/** A session as it stood at one version, and the key of its row. */
export interface LoadedSession extends RowSession<Segment> {
  readonly key: number;
}

/** Which session, and how far its log goes. */
export interface SessionVersion {
  readonly id: string;
  readonly key: number;
  readonly version: number;
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

/** Reads sessions as they stand, one or many at a time, and remembers them. */
export class SessionLog {
  readonly #handle: SqliteHandle;
  readonly #reader: RowReader<Segment, LoadedSession>;
  readonly #cache: SessionCache<LoadedSession>;
  readonly #locate: SqliteStatement;
  readonly #locateAll: SqliteStatement;
  readonly #sessions: SqliteStatement;

  constructor(handle: SqliteHandle, reader: RowReader<Segment, LoadedSession>) {
    this.#handle = handle;
    this.#reader = reader;
    this.#cache = reader.cache;
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
      this.#cache.remember(loaded);
      return loaded;
    });
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
      return { key, segments, ...runNow(this.#reader.headOf(segments, header, { seq, id, state }, facts)) };
    }
    const { last: _, ...place } = runNow(this.#reader.headAt(segments, header, version));
    // Nothing was appended yet, so that the last row, if any, tells another session's time.
    return { key, segments, ...place, head: Object.freeze({ ...place.head, updatedAt: row.updated_at }) };
  }
}

function isAt(session: LoadedSession | undefined, key: number, version: number): boolean {
  return session?.key === key && session.head.version === version;
}
