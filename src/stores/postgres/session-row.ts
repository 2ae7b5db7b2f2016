import type { RowSession } from "../rows/row-port.ts";
import { type Segment, segmentsAfter } from "../rows/segments.ts";

/** The columns that make a session, as a port reads them, of `sessionsIn`. */
export const SESSION_COLUMNS = `key, id, marked, version, updated_at, modified_at, origin_version, segments,
  header::text AS header`;

/**
 * Whether a session was not deleted, of one that is found by its key or id. Said in a way that no index of live sessions
 * answers: on a table that the database knows nothing of yet, it might walk through one of those instead.
 */
export const IS_LIVE = "coalesce(deleted_at, '') = ''";

/** Sessions together with their heads, as SQL. */
export function sessionsIn(schema: string): string {
  return `${schema}.sessions JOIN ${schema}.heads ON session_key = key`;
}

/** A session's row, of `SESSION_COLUMNS`. */
export interface SessionRow {
  readonly key: string;
  readonly id: string;
  readonly marked: boolean;
  readonly version: string;
  readonly updated_at: string;
  readonly modified_at: string;
  readonly origin_version: string;
  readonly segments: string;
  readonly header: string;
}

/** A session as it stood at one version, with the key of its row. */
export interface LoadedSession extends RowSession<Segment> {
  readonly key: number;
  /** Whether it can be appended to without marking it first. */
  readonly marked: boolean;
}

/** The text of a row's `segments`: where each part before the session's own begins, and whose it is. */
export function encodeSegments(segments: readonly Segment[]): string {
  return JSON.stringify(segments.slice(0, -1).map(({ key, start }) => [key, start]));
}

/** The parts of a session's log that its row tells of. */
export function segmentsOf(row: SessionRow): readonly Segment[] {
  const parts = JSON.parse(row.segments) as readonly (readonly [key: number, start: number])[];
  const version = Number(row.origin_version);
  const origins = parts.map(([key, start], index) => ({ key, start, end: parts[index + 1]?.[1] ?? version }));
  return segmentsAfter(origins, version, Number(row.key));
}
