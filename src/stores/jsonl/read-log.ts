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
    const start = range.reverse ? startAfter(state, fd, high) : startBefore(state, fd, low);
    const read = { state, fd, start, low, high, left, end: state.size };
    return range.reverse ? backward(read) : forward(read);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** A read that is under way. */
interface Read {
  readonly state: LogState;
  readonly fd: number;
  readonly start: Anchor;
  /** The first position, and the one after the last. */
  readonly low: number;
  readonly high: number;
  /** How many entries at most, and at least one. */
  readonly left: number;
  /** Where the log ended when the read began. */
  readonly end: number;
}

function* nothing(): Generator<null, undefined> {}

function* forward({ state, fd, start, low, end, ...read }: Read): Generator<Entry | null, undefined> {
  let { seq } = start;
  let { left } = read;
  try {
    for (const lines of readLines(fd, start.offset, end)) {
      for (const line of lines) {
        const count = countEntries(line);
        if (typeof count === "number" && seq + count <= low) {
          seq += count;
          continue;
        }
        const entries = parseLine(line, seq);
        if (typeof entries === "string") throw damageAt(fd, state.identity, line, entries);
        for (const entry of entries) {
          if (entry.seq < low) continue;
          if (left === 1) state.anchors.add({ seq, offset: line.offset });
          yield entry;
          if (--left === 0) return;
        }
        seq += entries.length;
      }
      yield null;
    }
  } finally {
    closeSync(fd);
  }
  throw new StaleView("The log is shorter than it was.");
}

function* backward({ state, fd, start, high, ...read }: Read): Generator<Entry | null, undefined> {
  let { seq } = start;
  let { left } = read;
  try {
    for (const lines of readLinesBackward(fd, start.offset, state.identity.headerEnd)) {
      for (const line of lines) {
        const count = countEntries(line);
        const entries = typeof count === "number" && seq - count >= high ? null : parseLine(line, 0);
        if (typeof entries === "string") throw damageAt(fd, state.identity, line, entries);
        const end = seq;
        seq -= entries?.length ?? (count as number);
        for (const [index, entry] of (entries ?? []).reverse().entries()) {
          (entry as { seq: number }).seq = end - 1 - index;
          if (entry.seq >= high) continue;
          if (left === 1) state.anchors.add({ seq, offset: line.offset });
          yield entry;
          if (--left === 0) return;
        }
      }
      yield null;
    }
  } finally {
    closeSync(fd);
  }
  throw new StaleView("The log is not as long as it was.");
}

function startBefore(state: LogState, fd: number, seq: number): Anchor {
  if (seq - state.anchors.before(seq).seq > SKIP_ENTRIES_MAX) addFromIndex(state, fd);
  return state.anchors.before(seq);
}

function startAfter(state: LogState, fd: number, seq: number): Anchor {
  const nearest = (): Anchor => state.anchors.after(seq) ?? state.end;
  if (nearest().seq - seq > SKIP_ENTRIES_MAX) addFromIndex(state, fd);
  return nearest();
}

function addFromIndex(state: LogState, fd: number): void {
  for (const anchor of readAnchors({ ...state.indexed, fd }))
    if (anchor.offset <= state.size) state.anchors.add(anchor);
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
