import type { ReadRange } from "../../session/store-driver.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { clipSegments, type LogRange } from "./segments.ts";

/** Few, as nobody knows how large they are. */
const PAGE_ENTRIES_FIRST = 32;
const PAGE_ENTRIES_MAX = 256;
const PAGE_CHARACTERS = 1024 * 1024;

/** The entries of a range as JSON, read a page at a time: neither a long log nor large entries must fit in memory. */
export async function* readPages<Part extends LogRange, Session extends RowSession<Part>>(
  port: RowPort<Part, Session>,
  { segments, head }: Session,
  { after, before, limit, reverse }: ReadRange,
): AsyncGenerator<readonly string[]> {
  const parts = clipSegments(segments, after + 1, Math.min(before, head.version));
  if (reverse) parts.reverse();
  let left = limit;
  let size = PAGE_ENTRIES_FIRST;
  for (const part of parts) {
    let rest: Part | null = part;
    while (rest !== null && left > 0) {
      const page: readonly string[] = await port.page(rest, Math.min(size, left), reverse);
      // A session that was purged under its reader has nothing more to give.
      if (page.length === 0) return;
      yield page;
      left -= page.length;
      size = nextSize(size, page);
      rest = without(rest, page.length, reverse);
    }
  }
}

function nextSize(size: number, page: readonly string[]): number {
  const characters = page.reduce((sum, body) => sum + body.length, 0);
  if (characters > PAGE_CHARACTERS) return Math.max(1, Math.floor(size / 4));
  return Math.min(PAGE_ENTRIES_MAX, size * 2);
}

function without<Part extends LogRange>(part: Part, count: number, reverse: boolean): Part | null {
  const { start, end } = part;
  if (count >= end - start) return null;
  return reverse ? { ...part, end: end - count } : { ...part, start: start + count };
}
