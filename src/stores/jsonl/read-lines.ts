import { closeSync, openSync, readSync } from "node:fs";
import { PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import { LINE_BYTES_MAX, NEWLINE, type RawLine } from "./log-line.ts";

const CHUNK_BYTES = 256 * 1024;
const PIECE_BYTES_FIRST = 64 * 1024;
const PIECE_BYTES_MAX = 512 * 1024;
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

/** Whole lines of a file that follow each other. */
export interface Piece {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** What is between two offsets at which lines begin, in pieces of whole lines; in reverse, the last one first. */
export function* readPieces(fd: number, from: number, to: number, reverse: boolean): Generator<Piece, undefined> {
  let [start, end] = [from, to];
  for (let size = PIECE_BYTES_FIRST; start < end; ) {
    const length = Math.min(size, end - start);
    const at = reverse ? end - length : start;
    const chunk = readChunk(fd, at, length);
    if (chunk.length < length) return;
    const whole = length === end - start;
    const first = reverse && !whole ? chunk.indexOf(NEWLINE) + 1 : 0;
    const last = reverse || whole ? length : chunk.lastIndexOf(NEWLINE) + 1;
    if (reverse) end = at + first;
    else start = at + last;
    size *= 2;
    // A line may be longer than the piece.
    if (first === last) continue;
    size = Math.min(size, PIECE_BYTES_MAX);
    yield { offset: at + first, bytes: chunk.subarray(first, last) };
  }
}

/** A file that is open until the end of the block that holds it. */
export class OpenFile implements Disposable {
  readonly fd: number;

  constructor(path: string, flags: string | number = "r") {
    this.fd = openSync(path, flags, PRIVATE_FILE_MODE);
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
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
