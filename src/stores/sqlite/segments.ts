import { SEQ_MAX, type Segment } from "../rows/segments.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

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
