import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { RowSession, StoredRow } from "../rows/row-port.ts";
import { type LogRange, SEQ_MAX } from "../rows/segments.ts";
import type { RedisReply } from "./redis-client.ts";

/** A session at one version. The log only grows, so a cached copy may be outdated but never holds a wrong entry. */
export interface StoredSession extends RowSession<Segment> {
  readonly stamp: Stamp;
  /** Whether this generation is marked in the index, so that a write need not mark it first. */
  readonly marked: boolean;
  /** The time of the last write, by the clock of the writer. */
  readonly writtenMs: number;
  readonly deletedAt: string | null;
}

/** The version stamp of a session, which changes with every write. */
export interface Stamp {
  /** Unique over all sessions that ever have the same id. */
  readonly uid: string;
  /** The number of writes. */
  readonly rev: number;
  /** The generation, see session-index.ts. */
  readonly gen: number;
  /** The stored text, with a name of the last write: after a server lost writes, a different write can have the same count. */
  readonly text: string;
}

/** The field `h` of a session's hash. Earlier layouts have more elements after these. */
export type HeadText = readonly [gen: number, writtenMs: number, version: number, updatedAt: string];

// Together they give each write a unique name, at a lower cost than a random id per write.
const WRITER = Math.random().toString(36).slice(2);
let writes = 0;

/** The stamp of the next write to a session, or of its first write. */
export function nextStamp({ uid, rev, gen }: Pick<Stamp, "uid" | "rev" | "gen">): Stamp {
  return { uid, rev: rev + 1, gen, text: `${uid} ${rev + 1} ${gen} ${WRITER}.${++writes}` };
}

/** Parses the text of a stamp. */
export function readStamp(text: string): Stamp {
  const [uid = "", rev, gen] = text.split(" ");
  return { uid, rev: Number(rev), gen: Number(gen), text };
}

/** Encodes the field `h` for a head that is written now. */
export function writeHead({ version, updatedAt }: SessionHead, gen: number): string {
  return JSON.stringify([gen, Date.now(), version, updatedAt] satisfies HeadText);
}

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

type StreamReply = readonly (readonly [position: string, fields: readonly [string, string]])[];

/** The stream id of a position. Offset by one, as a stream cannot have the id 0. */
export function positionOf(seq: number): string {
  return String(seq + 1);
}

/** Rows as arguments of a script: id and text of each. One text costs the server less than three. Its parts have no line breaks. */
export function argsOf(rows: readonly StoredRow[]): string[] {
  return rows.flatMap(({ id, state, body }) => [id, `${state}\n${JSON.stringify(id)}\n${body}`]);
}

/** Decodes rows from the reply of a stream command. */
export function rowsOf(reply: RedisReply): StoredRow[] {
  return (reply as StreamReply).map(([position, [, text]]) => rowOf(Number.parseInt(position, 10) - 1, text));
}

/** Decodes a row from its text. In earlier layouts, only the entry has the id. */
export function rowOf(seq: number, text: string): StoredRow {
  const [state = "", second = "", body = second] = text.split("\n");
  const known = JSON.parse(second) as string | Entry;
  return { seq, id: typeof known === "string" ? known : known.id, state, body };
}
