import type { RowSession } from "../rows/row-port.ts";
import { type Segment, segmentsAfter } from "../rows/segments.ts";

/** The columns from which a port loads a session, in a query of `sessionsIn`. */
export const SESSION_COLUMNS = `key, id, marked, version, updated_at, modified_at, origin_version, segments,
  header::text AS header`;

/**
 * SQL condition for a session that is selected by key or id: it is not deleted. Written so that no partial index of live
 * sessions matches it: without statistics, the planner might scan such an index instead of looking up the id.
 */
export const IS_LIVE = "coalesce(deleted_at, '') = ''";

/** SQL that joins sessions with their heads. */
export function sessionsIn(schema: string): string {
  return `${schema}.sessions JOIN ${schema}.heads ON session_key = key`;
}

/** A row of `SESSION_COLUMNS`. */
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

/** A session at one version, with the key of its row. */
export interface LoadedSession extends RowSession<Segment> {
  readonly key: number;
  /** Whether its row in `heads` is `marked`, so that an append need not mark it first. */
  readonly marked: boolean;
}

/** The text of the column `segments`: key and start of each inherited segment. */
export function encodeSegments(segments: readonly Segment[]): string {
  return JSON.stringify(segments.slice(0, -1).map(({ key, start }) => [key, start]));
}

/** The segments of a session's log, from its row. */
export function segmentsOf(row: SessionRow): readonly Segment[] {
  const parts = JSON.parse(row.segments) as readonly (readonly [key: number, start: number])[];
  const version = Number(row.origin_version);
  const origins = parts.map(([key, start], index) => ({ key, start, end: parts[index + 1]?.[1] ?? version }));
  return segmentsAfter(origins, version, Number(row.key));
}
