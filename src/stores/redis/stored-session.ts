import type { SessionHead } from "../../session/log/fold.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { Segment } from "./segments.ts";

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
