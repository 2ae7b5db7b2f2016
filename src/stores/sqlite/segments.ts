import { SEQ_MAX } from "./schema.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** A part of a log, and the session whose rows hold it. Both ends are positions; `end` is exclusive. */
export interface Segment {
  readonly key: number;
  readonly start: number;
  readonly end: number;
}

/** The rows of a part of a log, of what `boundsOf` gives. */
export const IN_SEGMENT = "session_key = ? AND seq BETWEEN ? AND ?";

/** What is bound to `IN_SEGMENT`. */
export function boundsOf({ key, start, end }: Segment): [key: number, first: number, last: number] {
  return [key, start, end - 1];
}

/** Where a session's log comes from: its own rows, after those it takes from another. */
export interface Origin {
  readonly key: number;
  readonly origin_key: number | null;
  readonly origin_version: number;
}

/** The parts of a session's log, in order; the last is its own and has no end. */
export function segmentsOf(handle: SqliteHandle, session: Origin): readonly Segment[] {
  const origin = handle.prepare("SELECT key, origin_key, origin_version FROM sessions WHERE key = ?");
  const segments: Segment[] = [];
  let end = SEQ_MAX;
  let next: Origin | undefined = session;
  // Every step leads to a session made earlier, so its key is smaller and the walk comes to an end.
  while (next !== undefined) {
    segments.push({ key: next.key, start: next.origin_version, end });
    end = next.origin_version;
    next = next.origin_key === null ? undefined : origin.get<Origin>([next.origin_key]);
  }
  return Object.freeze(segments.reverse());
}

/** The parts of the log of a new session that begins with another's first `version` entries. */
export function segmentsAfter(segments: readonly Segment[], version: number, key: number): readonly Segment[] {
  return Object.freeze([...clipSegments(segments, 0, version), { key, start: version, end: SEQ_MAX }]);
}

/** The part that holds a position. */
export function segmentAt(segments: readonly Segment[], seq: number): Segment {
  let [low, high] = [0, segments.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((segments[middle] as Segment).start <= seq) low = middle;
    else high = middle - 1;
  }
  return segments[low] as Segment;
}

/** What of each part lies in a range of positions, in order. */
export function clipSegments(segments: readonly Segment[], start: number, end: number): Segment[] {
  return segments
    .map((segment) => ({ key: segment.key, start: Math.max(segment.start, start), end: Math.min(segment.end, end) }))
    .filter((segment) => segment.start < segment.end);
}
