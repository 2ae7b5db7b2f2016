import { closeSync } from "node:fs";
import type { Entry } from "../../session/entry.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { type Anchor, readAnchors } from "./log-index.ts";
import { countEntries, parseLine } from "./log-line.ts";
import { damageAt, type LogState, openLog, StaleView } from "./log-state.ts";
import { giveTurn, readLines, readLinesBackward } from "./read-lines.ts";
import { asStoreError } from "./store-failure.ts";

/** How many entries are skipped one by one, rather than reading the index, to come to the first that is asked for. */
const SKIP_ENTRIES_MAX = 1024;

/**
 * Opens the entries of a range, in the order that it asks for. What is appended meanwhile is not among them. Null is a
 * moment to let others have a turn.
 *
 * @throws {StaleView} when another file is in the log's place.
 */
export function readLog(state: LogState, range: ReadRange): Generator<Entry | null, undefined> {
  const low = Math.max(0, range.after + 1);
  const high = Math.min(range.before, state.end.seq);
  const left = Math.min(range.limit, high - low);
  if (left <= 0) return nothing();
  const fd = openLog(state.identity);
  try {
    return readEntries(state, fd, {
      low,
      high,
      left,
      reverse: range.reverse,
      start: startOf(state, fd, low, high, range),
    });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function* nothing(): Generator<null, undefined> {}

/** A read that is under way. */
interface Read {
  /** The first position, and the one after the last. */
  readonly low: number;
  readonly high: number;
  /** How many entries at most, and at least one. */
  readonly left: number;
  readonly reverse: boolean;
  /** Where it begins, before the first entry or, in reverse, after the last. */
  readonly start: Anchor;
}

function* readEntries(
  state: LogState,
  fd: number,
  { low, high, reverse, start, ...read }: Read,
): Generator<Entry | null, undefined> {
  const { identity, size } = state;
  let { left } = read;
  let { seq } = start;
  const groups = reverse ? readLinesBackward(fd, start.offset, identity.headerEnd) : readLines(fd, start.offset, size);
  try {
    for (const lines of groups) {
      for (const line of lines) {
        const count = countEntries(line);
        if (typeof count === "string") throw damageAt(fd, identity, line, count);
        const from = reverse ? seq - count : seq;
        seq = reverse ? from : from + count;
        if (from >= high || from + count <= low) continue;
        const entries = parseLine(line, from);
        if (typeof entries === "string") throw damageAt(fd, identity, line, entries);
        if (reverse) entries.reverse();
        for (const entry of entries) {
          if (entry.seq < low || entry.seq >= high) continue;
          // The next read often goes on where this one ends.
          if (left === 1) state.anchors.add({ seq: from, offset: line.offset });
          yield entry;
          if (--left === 0) return;
        }
      }
      yield null;
    }
  } finally {
    closeSync(fd);
  }
  throw new StaleView("The log is shorter than it was.");
}

/** A place to begin at, not far before the first entry or, in reverse, after the last. */
function startOf(state: LogState, fd: number, low: number, high: number, { reverse }: ReadRange): Anchor {
  const nearest = (): Anchor => (reverse ? (state.anchors.after(high) ?? state.end) : state.anchors.before(low));
  if (Math.abs(nearest().seq - (reverse ? high : low)) > SKIP_ENTRIES_MAX) {
    for (const anchor of readAnchors(state.identity, fd)) if (anchor.offset <= state.size) state.anchors.add(anchor);
  }
  return nearest();
}

/** The entries of a read that is opened at its first step; what goes wrong in a step becomes a `SessionError`. */
export function iterateRead(open: () => Promise<Generator<Entry | null> | null>): AsyncIterableIterator<Entry> {
  let inner: Generator<Entry | null> | null | undefined;
  const step = (): Promise<IteratorResult<Entry>> => {
    try {
      const result = inner?.next();
      if (result === undefined || result.done === true) return Promise.resolve({ done: true, value: undefined });
      if (result.value === null) return giveTurn().then(step);
      return Promise.resolve(result as IteratorResult<Entry>);
    } catch (error) {
      return Promise.reject(asStoreError(error));
    }
  };
  return {
    next: () =>
      inner !== undefined
        ? step()
        : open().then((opened) => {
            inner = opened;
            return step();
          }),
    async return() {
      inner?.return(undefined);
      inner = null;
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
