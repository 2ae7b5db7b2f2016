import type { Entry } from "../../session/entry.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { boundsOf, IN_SEGMENT } from "./segments.ts";
import { clipSegments, type Segment, segmentAt } from "../rows/segments.ts";
import type { LoadedSession } from "./session-log.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

/** Few, as nobody knows how large they are. */
const PAGE_ENTRIES_FIRST = 16;
const PAGE_ENTRIES_MAX = 256;
const PAGE_CHARACTERS = 1024 * 1024;

/** Reads entries in pages, so that neither a long log nor large entries have to fit in memory at once. */
export class EntryReader {
  readonly #forward: SqliteStatement;
  readonly #backward: SqliteStatement;

  constructor(handle: SqliteHandle) {
    const select = `SELECT body FROM entries WHERE ${IN_SEGMENT}`;
    this.#forward = handle.prepare(`${select} ORDER BY seq LIMIT ?`);
    this.#backward = handle.prepare(`${select} ORDER BY seq DESC LIMIT ?`);
  }

  /** The entries of a range, a page at a time. */
  *pages(session: LoadedSession, range: ReadRange): Generator<Entry[]> {
    for (const bodies of this.bodies(session, range)) yield bodies.map((body) => JSON.parse(body) as Entry);
  }

  /** The entries of a range as they are stored, a page at a time. */
  *bodies({ segments, head }: LoadedSession, range: ReadRange): Generator<string[]> {
    const { after, before, limit, reverse } = range;
    const parts = clipSegments(segments, after + 1, Math.min(before, head.version));
    if (reverse) parts.reverse();
    let left = limit;
    let size = PAGE_ENTRIES_FIRST;
    for (const part of parts) {
      let rest: Segment | null = part;
      while (rest !== null && left > 0) {
        const bodies = this.#page(rest, Math.min(size, left), reverse);
        if (bodies.length === 0) return;
        yield bodies;
        left -= bodies.length;
        size = nextSize(size, bodies);
        rest = without(rest, bodies.length, reverse);
      }
    }
  }

  /** The entry at a position, or null when it was purged. */
  at({ segments }: LoadedSession, seq: number): Entry | null {
    const [body] = this.#page({ key: segmentAt(segments, seq).key, start: seq, end: seq + 1 }, 1, false);
    return body === undefined ? null : (JSON.parse(body) as Entry);
  }

  #page(segment: Segment, size: number, reverse: boolean): string[] {
    const statement = reverse ? this.#backward : this.#forward;
    return statement.all<{ body: string }>([...boundsOf(segment), size]).map(({ body }) => body);
  }
}

function nextSize(size: number, bodies: readonly string[]): number {
  const characters = bodies.reduce((sum, body) => sum + body.length, 0);
  if (characters > PAGE_CHARACTERS) return Math.max(1, Math.floor(size / 4));
  return Math.min(PAGE_ENTRIES_MAX, size * 2);
}

function without({ key, start, end }: Segment, count: number, reverse: boolean): Segment | null {
  if (count >= end - start) return null;
  return reverse ? { key, start, end: end - count } : { key, start: start + count, end };
}
