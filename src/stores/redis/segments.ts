import { type LogRange, SEQ_MAX } from "../rows/segments.ts";

/** A part of a log, and the session, by its unique name, that holds it. */
export interface Segment extends LogRange {
  readonly id: string;
  readonly uid: string;
}

/** The parts of a log as they are written down: of each but the session's own, whose it is and where it ends. */
type WrittenSegments = readonly (readonly [id: string, uid: string, end: number])[];

/** The parts of a log without the session's own, as text. */
export function writeSegments(inherited: readonly Segment[]): string {
  return JSON.stringify(inherited.map(({ id, uid, end }) => [id, uid, end]));
}

/** The parts that a text tells of. */
export function readSegments(text: string): Segment[] {
  let start = 0;
  return (JSON.parse(text) as WrittenSegments).map(([id, uid, end]) => {
    const segment = { id, uid, start, end };
    start = end;
    return segment;
  });
}

/** The parts of a session's log: those it took over, and its own, which has no end. */
export function segmentsOf(inherited: readonly Segment[], id: string, uid: string): readonly Segment[] {
  const start = inherited.at(-1)?.end ?? 0;
  return Object.freeze([...inherited, { id, uid, start, end: SEQ_MAX }]);
}
