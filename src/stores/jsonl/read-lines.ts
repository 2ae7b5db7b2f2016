import { readSync } from "node:fs";
import { LINE_BYTES_MAX, NEWLINE, type RawLine } from "./log-line.ts";

const CHUNK_BYTES = 256 * 1024;
const BACKWARD_CHUNK_BYTES = 64 * 1024;
/** How much of a line that is too long is kept, to say what it was. */
const BEGINNING_BYTES = 64 * 1024;

/**
 * The whole lines of an open file between two offsets, in groups as they are read. What stands after the last line's
 * end is a write that was cut short, and not a line.
 *
 * Reading is synchronous: to parse a chunk takes far longer than to copy it from the system's cache. Who reads many
 * chunks lets others have a turn between them.
 */
export function* readLines(fd: number, from: number, to: number): Generator<RawLine[], undefined> {
  let offset = from;
  let length = 0;
  let parts: Buffer[] = [];
  for (let at = from; at < to; ) {
    const chunk = readChunk(fd, at, Math.min(CHUNK_BYTES, to - at));
    if (chunk.length === 0) return;
    const lines: RawLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end);
      length += rest.length + 1;
      const bytes = parts.length === 0 ? rest : Buffer.concat([...parts, rest]);
      lines.push({ offset, length, bytes });
      offset += length;
      length = 0;
      parts = [];
      start = end + 1;
    }
    length += chunk.length - start;
    if (length > LINE_BYTES_MAX) parts = [Buffer.from((parts[0] as Buffer).subarray(0, BEGINNING_BYTES))];
    else if (start < chunk.length) parts.push(chunk.subarray(start));
    at += chunk.length;
    if (lines.length > 0) yield lines;
  }
}

/** The lines before an offset at which a line begins, the last one first, in groups as they are read. */
export function* readLinesBackward(fd: number, from: number, downTo: number): Generator<RawLine[], undefined> {
  let size = BACKWARD_CHUNK_BYTES;
  for (let end = from; end > downTo; size *= 2) {
    const at = Math.max(downTo, end - size);
    const chunk = readChunk(fd, at, end - at);
    if (chunk.length < end - at) return;
    const lines: RawLine[] = [];
    // What comes before the first line's end may be the rest of a longer line, unless nothing is left before it.
    for (let start = at === downTo ? 0 : chunk.indexOf(NEWLINE) + 1; start < chunk.length; ) {
      const newline = chunk.indexOf(NEWLINE, start);
      lines.push({ offset: at + start, length: newline + 1 - start, bytes: chunk.subarray(start, newline) });
      start = newline + 1;
    }
    const [first] = lines;
    if (first === undefined) continue;
    end = first.offset;
    yield lines.reverse();
    size = Math.min(size, CHUNK_BYTES * 2);
  }
}

/** As many bytes as there are, up to `length`. */
export function readChunk(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const count = readSync(fd, buffer, filled, length - filled, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled === length ? buffer : buffer.subarray(0, filled);
}

/** How many lines end before an offset. */
export function countLines(fd: number, to: number): number {
  let count = 0;
  for (const lines of readLines(fd, 0, to)) count += lines.length;
  return count;
}

/** Lets others have their turn within long work. */
export function giveTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
