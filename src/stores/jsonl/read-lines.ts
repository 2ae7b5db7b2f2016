import { closeSync, openSync, readSync } from "node:fs";
import { PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import { LINE_BYTES_MAX, NEWLINE, type RawLine } from "./log-line.ts";

const CHUNK_BYTES = 256 * 1024;
const PIECE_BYTES_FIRST = 64 * 1024;
const PIECE_BYTES_MAX = 512 * 1024;
/** How many bytes of a line that is too long are kept for the error. */
const BEGINNING_BYTES = 64 * 1024;

/**
 * Reads the complete lines of an open file between two offsets, in one group for each chunk. Bytes after the last newline
 * are a torn write, and are ignored.
 *
 * Reading is synchronous, since parsing a chunk takes far longer than copying it from the system's cache. Callers that
 * read many chunks yield to the event loop between them.
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

/** Consecutive complete lines of a file. */
export interface Piece {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Reads the bytes between the beginnings of two lines in pieces of complete lines; in reverse, the last piece first. */
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
    // The line is longer than the piece: read again with a larger one.
    if (first === last) continue;
    size = Math.min(size, PIECE_BYTES_MAX);
    yield { offset: at + first, bytes: chunk.subarray(first, last) };
  }
}

/** An open file that `using` closes at the end of the block. */
export class OpenFile implements Disposable {
  readonly fd: number;

  constructor(path: string, flags: string | number = "r") {
    this.fd = openSync(path, flags, PRIVATE_FILE_MODE);
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}

/** Reads up to `length` bytes; fewer if the file ends before. */
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

/** Counts the lines that end before an offset. */
export function countLines(fd: number, to: number): number {
  let count = 0;
  for (const lines of readLines(fd, 0, to)) count += lines.length;
  return count;
}
