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
  let end = from;
  // What is known of the line that begins before the chunk, without its end; null until its end has been seen.
  let rest: Buffer[] | null = null;
  for (let at = from; at > downTo; ) {
    const length = Math.min(size, at - downTo);
    const chunk = readChunk(fd, at - length, length);
    if (chunk.length < length) return;
    at -= length;
    const lines: RawLine[] = [];
    let stop = chunk.length;
    while (stop > 0) {
      const newline = chunk.lastIndexOf(NEWLINE, stop - 1);
      if (newline < 0) break;
      if (rest !== null) {
        const bytes = Buffer.concat([chunk.subarray(newline + 1, stop), ...rest]);
        lines.push({ offset: at + newline + 1, length: end - at - newline - 1, bytes });
        end = at + newline + 1;
      }
      rest = [];
      stop = newline;
    }
    if (rest === null) return;
    rest.unshift(chunk.subarray(0, stop));
    if (at === downTo) lines.push({ offset: at, length: end - at, bytes: Buffer.concat(rest) });
    if (lines.length > 0) yield lines;
    size = Math.min(size * 2, CHUNK_BYTES * 4);
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
