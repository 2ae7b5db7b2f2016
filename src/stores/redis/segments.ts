import { type LogRange, SEQ_MAX } from "../rows/segments.ts";

/** A part of a log, with the id and uid of the session that stores it. */
export interface Segment extends LogRange {
  readonly id: string;
  readonly uid: string;
}

/** The stored form of segments: the session and the end of each, without the session's own. */
type WrittenSegments = readonly (readonly [id: string, uid: string, end: number])[];

/** Encodes inherited segments as text. */
export function writeSegments(inherited: readonly Segment[]): string {
  return JSON.stringify(inherited.map(({ id, uid, end }) => [id, uid, end]));
}

/** Decodes inherited segments from text. */
export function readSegments(text: string): Segment[] {
  let start = 0;
  return (JSON.parse(text) as WrittenSegments).map(([id, uid, end]) => {
    const segment = { id, uid, start, end };
    start = end;
    return segment;
  });
}

/** The segments of a session's log: the inherited ones and its own, which has no end. */
export function segmentsOf(inherited: readonly Segment[], id: string, uid: string): readonly Segment[] {
  const start = inherited.at(-1)?.end ?? 0;
  return Object.freeze([...inherited, { id, uid, start, end: SEQ_MAX }]);
}
