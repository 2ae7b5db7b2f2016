import type { Entry } from "../../session/entry.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { clipSegments } from "../rows/segments.ts";
import type { Segment } from "./segments.ts";
import type { EntryRow, SessionLog } from "./session-log.ts";
import type { StoredSession } from "./stored-session.ts";

const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 256;
const PAGE_CHARACTERS = 1024 * 1024;

/** The entries of a range, read a page at a time, so that neither a long log nor large entries have to fit in memory. */
export async function* readPages(
  log: SessionLog,
  { segments, head }: StoredSession,
  { after, before, limit, reverse }: ReadRange,
): AsyncGenerator<Entry[]> {
  const parts = clipSegments(segments, after + 1, Math.min(before, head.version));
  if (reverse) parts.reverse();
  let left = limit;
  let size = PAGE_ENTRIES_FIRST;
  for (const part of parts) {
    let rest: Segment | null = part;
    while (rest !== null && left > 0) {
      const rows: EntryRow[] = await log.rows(rest, Math.min(size, left), reverse);
      // A session that was purged under the reader has nothing more to give.
      if (rows.length === 0) return;
      yield rows.map(({ body }) => JSON.parse(body) as Entry);
      left -= rows.length;
      size = nextSize(size, rows);
      rest = without(rest, rows.length, reverse);
    }
  }
}

function nextSize(size: number, rows: readonly EntryRow[]): number {
  const characters = rows.reduce((sum, { body }) => sum + body.length, 0);
  if (characters > PAGE_CHARACTERS) return Math.max(1, Math.floor(size / 4));
  return Math.min(PAGE_ENTRIES_MAX, size * 2);
}

function without(segment: Segment, count: number, reverse: boolean): Segment | null {
  const { start, end } = segment;
  if (count >= end - start) return null;
  return reverse ? { ...segment, end: end - count } : { ...segment, start: start + count };
}
