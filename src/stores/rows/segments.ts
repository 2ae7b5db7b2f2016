/** The largest possible position. A session's own part of its log ends here, because it has no end yet. */
export const SEQ_MAX = 0xffffffff;

/** A range of positions in a log. `end` is exclusive. */
export interface LogRange {
  readonly start: number;
  readonly end: number;
}

/** A part of a log, with the key of the session whose rows hold it. */
export interface Segment extends LogRange {
  readonly key: number;
}

/** The segments of a fork: the first `version` positions of `segments`, then its own part under `key`. */
export function segmentsAfter(segments: readonly Segment[], version: number, key: number): readonly Segment[] {
  return Object.freeze([...clipSegments(segments, 0, version), { key, start: version, end: SEQ_MAX }]);
}

/** The segment that holds a position. */
export function segmentAt<S extends LogRange>(segments: readonly S[], seq: number): S {
  let [low, high] = [0, segments.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((segments[middle] as S).start <= seq) low = middle;
    else high = middle - 1;
  }
  return segments[low] as S;
}

/** Clips segments to a range of positions, in order; those outside it are left out. */
export function clipSegments<S extends LogRange>(segments: readonly S[], start: number, end: number): S[] {
  return segments
    .map((segment) => ({ ...segment, start: Math.max(segment.start, start), end: Math.min(segment.end, end) }))
    .filter((segment) => segment.start < segment.end);
}
