import type { FileHandle } from "node:fs/promises";
import type { Entry } from "../../session/entry.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import type { Anchor } from "./entry-run.ts";
import { damageAt, openLog, StaleView } from "./log-access.ts";
import { countEntries, parseLine } from "./log-line.ts";
import type { LogState } from "./log-state.ts";
import { readLines, readLinesBackward } from "./read-lines.ts";

/** How many entries are skipped one by one, rather than loading an index, to come to the first that is asked for. */
const SKIP_ENTRIES_MAX = 4096;
const MARKS_MAX = 8;

/** Places where reads have ended, as the next one often goes on there. */
export class ReadMarks {
  #marks: Anchor[] = [];

  add(mark: Anchor): void {
    this.#marks = [mark, ...this.#marks.filter(({ seq }) => seq !== mark.seq)].slice(0, MARKS_MAX);
  }

  all(): readonly Anchor[] {
    return this.#marks;
  }
}

/**
 * Opens the entries of a range, in the order that it asks for. What is appended meanwhile is not among them.
 *
 * @throws {StaleView} when another file is in the log's place.
 */
export async function openRead(
  state: LogState,
  marks: ReadMarks,
  range: ReadRange,
): Promise<AsyncGenerator<Entry, undefined>> {
  const { end, identity } = state;
  const low = Math.max(0, range.after + 1);
  const high = Math.min(range.before, end.seq);
  const left = Math.min(range.limit, high - low);
  if (left <= 0) return nothing();
  const start = range.reverse ? await startAfter(state, marks, high) : await startBefore(state, marks, low);
  const handle = await openLog(identity);
  const read = { handle, path: identity.places.log, start, low, high, left, marks };
  return range.reverse ? backward(read, identity.headerEnd) : forward(read, end.offset);
}

/** A read that is under way. */
interface Read {
  readonly handle: FileHandle;
  readonly path: string;
  readonly start: Anchor;
  /** The first position, and the one after the last. */
  readonly low: number;
  readonly high: number;
  /** How many entries at most, and at least one. */
  readonly left: number;
  readonly marks: ReadMarks;
}

async function* nothing(): AsyncGenerator<Entry, undefined> {}

async function* forward(read: Read, end: number): AsyncGenerator<Entry, undefined> {
  let { seq } = read.start;
  let { left } = read;
  try {
    for await (const lines of readLines(read.handle, read.start.offset, end)) {
      for (const line of lines) {
        const count = countEntries(line);
        if (typeof count === "number" && seq + count <= read.low) {
          seq += count;
          continue;
        }
        const entries = parseLine(line, seq);
        if (typeof entries === "string") throw await damageAt(read.handle, read.path, line, entries);
        for (const entry of entries) {
          if (entry.seq < read.low) continue;
          yield entry;
          if (--left > 0) continue;
          read.marks.add({ seq, offset: line.offset });
          return;
        }
        seq += entries.length;
      }
    }
  } finally {
    await read.handle.close();
  }
  throw new StaleView("The log is shorter than it was.");
}

async function* backward(read: Read, downTo: number): AsyncGenerator<Entry, undefined> {
  let { seq } = read.start;
  let { left } = read;
  try {
    for await (const lines of readLinesBackward(read.handle, read.start.offset, downTo)) {
      for (const line of lines) {
        const count = countEntries(line);
        const entries = typeof count === "number" && seq - count >= read.high ? null : parseLine(line, 0);
        if (typeof entries === "string") throw await damageAt(read.handle, read.path, line, entries);
        const end = seq;
        seq -= entries?.length ?? (count as number);
        for (const [index, entry] of (entries ?? []).reverse().entries()) {
          (entry as { seq: number }).seq = end - 1 - index;
          if (entry.seq >= read.high) continue;
          yield entry;
          if (--left > 0) continue;
          read.marks.add({ seq: end, offset: line.offset + line.length });
          return;
        }
      }
    }
  } finally {
    await read.handle.close();
  }
  throw new StaleView("The log is not as long as it was.");
}

async function startBefore(
  { identity, finder, pending, end }: LogState,
  marks: ReadMarks,
  seq: number,
): Promise<Anchor> {
  const known = [{ seq: 0, offset: identity.headerEnd }, pending.run.anchorBefore(seq), ...marks.all()];
  const before = known.filter((place): place is Anchor => place !== null && place.seq <= seq);
  const nearest = before.reduce((a, b) => (b.seq > a.seq ? b : a));
  return seq - nearest.seq > SKIP_ENTRIES_MAX ? finder.anchorBefore(seq, end) : nearest;
}

async function startAfter({ finder, pending, end }: LogState, marks: ReadMarks, seq: number): Promise<Anchor> {
  const known = [end, pending.run.anchorAfter(seq), ...marks.all()];
  const after = known.filter((place): place is Anchor => place !== null && place.seq >= seq);
  const nearest = after.reduce((a, b) => (b.seq < a.seq ? b : a));
  return nearest.seq - seq > SKIP_ENTRIES_MAX ? finder.anchorAfter(seq, end) : nearest;
}
