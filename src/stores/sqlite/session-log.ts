import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionHeader } from "../../session/header.ts";
import { runNow } from "../rows/asking.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { RowReader } from "../rows/row-reader.ts";
import type { Segment } from "../rows/segments.ts";
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

interface SessionRow extends Origin {
  readonly updated_at: string;
  readonly header: string;
}

/** Reads sessions as they stand, and remembers them. */
export class SessionLog {
  readonly #handle: SqliteHandle;
  readonly #reader: RowReader<Segment, LoadedSession>;
  readonly #locateLive: SqliteStatement;
  readonly #locateDeleted: SqliteStatement;
  readonly #session: SqliteStatement;

  constructor(handle: SqliteHandle, reader: RowReader<Segment, LoadedSession>) {
    this.#handle = handle;
    this.#reader = reader;
    const last = "(SELECT seq FROM entries WHERE session_key = sessions.key ORDER BY seq DESC LIMIT 1)";
    const locate = `SELECT id, key, coalesce(${last} + 1, origin_version) AS version FROM sessions WHERE id = ?`;
    this.#locateLive = handle.prepare(`${locate} AND deleted_at IS NULL`);
    this.#locateDeleted = handle.prepare(`${locate} AND deleted_at IS NOT NULL`);
    this.#session = handle.prepare(
      "SELECT key, origin_key, origin_version, updated_at, header FROM sessions WHERE key = ?",
    );
  }

  /** A live session, or a deleted one, as it stands now, or null. */
  load(sessionId: string, deleted = false): LoadedSession | null {
    const found = (deleted ? this.#locateDeleted : this.#locateLive).get<SessionVersion>([sessionId]);
    return found === undefined ? null : this.loadVersion(found);
  }

  /** A session, live or deleted, at a version; null when it has been purged. */
  loadVersion({ id, key, version }: SessionVersion): LoadedSession | null {
    const { cache } = this.#reader;
    const cached = cache.get(id);
    const known = cached?.key === key ? cached : undefined;
    if (known?.head.version === version) return known;
    const row = this.#session.get<SessionRow>([key]);
    if (row === undefined) return null;
    const header = known?.head.header ?? freezeDeep(JSON.parse(row.header) as SessionHeader);
    const segments = known?.segments ?? segmentsOf(this.#handle, row);
    const { head, leafSeq, factsSeq } = runNow(this.#reader.headAt(segments, header, version));
    // Before the first append the last row, if any, tells another session's time.
    const updatedAt = version === row.origin_version ? row.updated_at : head.updatedAt;
    const loaded = { key, segments, head: Object.freeze({ ...head, updatedAt }), leafSeq, factsSeq };
    cache.remember(loaded);
    return loaded;
  }
}
