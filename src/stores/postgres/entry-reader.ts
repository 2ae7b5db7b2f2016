import type { Entry } from "../../session/entry.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { clipSegments, type Segment } from "../rows/segments.ts";
import { fromJsonb } from "./jsonb-text.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import type { LoadedSession } from "./session-row.ts";

const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 512;
const PAGE_CHARACTERS = 1024 * 1024;

/** Reads entries in pages, so that neither a long log nor large entries have to fit in memory at once. */
export class EntryReader {
  readonly #handle: PostgresHandle;

  constructor(handle: PostgresHandle) {
    this.#handle = handle;
  }

  /** The entries of a range, a page at a time. */
  async *pages({ segments, head }: LoadedSession, range: ReadRange): AsyncGenerator<Entry[]> {
    const { after, before, limit, reverse } = range;
    const parts = clipSegments(segments, after + 1, Math.min(before, head.version));
    if (reverse) parts.reverse();
    let left = limit;
    let size = PAGE_ENTRIES_FIRST;
    for (const part of parts) {
      let rest: Segment | null = part;
      while (rest !== null && left > 0) {
        const bodies = await this.#page(rest, Math.min(size, left), reverse);
        if (bodies.length === 0) return;
        yield bodies.map((body) => fromJsonb(body) as Entry);
        left -= bodies.length;
        size = nextSize(size, bodies);
        rest = without(rest, bodies.length, reverse);
      }
    }
  }

  async #page({ key, start, end }: Segment, size: number, reverse: boolean): Promise<string[]> {
    const rows = await this.#handle.read<{ body: string }>(
      `SELECT body::text AS body FROM ${this.#handle.schema}.entries
       WHERE session_key = $1 AND seq >= $2 AND seq < $3 ORDER BY seq ${reverse ? "DESC" : ""} LIMIT $4`,
      [key, start, end, size],
    );
    return rows.map(({ body }) => body);
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
