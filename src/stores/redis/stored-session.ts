import type { SessionHead } from "../../session/log/fold.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { Segment } from "./segments.ts";

/** A session as it stood at one moment. What it says of the log is never wrong, only behind. */
export interface StoredSession extends RowSession<Segment> {
  readonly stamp: Stamp;
  /** Whether the index knows that this generation is being written to. */
  readonly marked: boolean;
  /** When it was last written to, by the writer's clock. */
  readonly writtenMs: number;
  readonly deletedAt: string | null;
}

/** What changes with every write to a session. */
export interface Stamp {
  /** Tells the session from every other that has, had or will have the same id. */
  readonly uid: string;
  /** How often it was written to. */
  readonly rev: number;
  /** See session-index.ts. */
  readonly gen: number;
  /** All of it as it is stored, with a name of the last write: where a server lost writes, others may have the same count. */
  readonly text: string;
}

/** What a session's hash says of its head, in the order it is stored in; earlier layouts have more after it. */
export type HeadText = readonly [gen: number, writtenMs: number, version: number, updatedAt: string];

// Together they name a write as no other is named, and cost an append less than a random name does.
const WRITER = Math.random().toString(36).slice(2);
let writes = 0;

/** The stamp of the next write to a session, or of its first one. */
export function nextStamp({ uid, rev, gen }: Pick<Stamp, "uid" | "rev" | "gen">): Stamp {
  return { uid, rev: rev + 1, gen, text: `${uid} ${rev + 1} ${gen} ${WRITER}.${++writes}` };
}

/** The stamp that a text tells of. */
export function readStamp(text: string): Stamp {
  const [uid = "", rev, gen] = text.split(" ");
  return { uid, rev: Number(rev), gen: Number(gen), text };
}

/** What the hash of a session says of a head that is written now. */
export function writeHead({ version, updatedAt }: SessionHead, gen: number): string {
  return JSON.stringify([gen, Date.now(), version, updatedAt] satisfies HeadText);
}
