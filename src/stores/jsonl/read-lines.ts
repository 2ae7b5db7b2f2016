import { LINE_BYTES_MAX, NEWLINE, type RawLine } from "./log-line.ts";

const CHUNK_BYTES = 256 * 1024;
const BACKWARD_CHUNK_BYTES = 64 * 1024;
/** How much of a line that is too long is kept, to say what it was. */
const BEGINNING_BYTES = 64 * 1024;

/** What bytes can be read from: an open file, or a file that was read as a whole. */
export interface ByteSource {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** The bytes of a file that is read as a whole, since that is cheaper than reading its parts. */
export async function readAhead(source: ByteSource, size: number): Promise<ByteSource> {
  const bytes = await readChunk(source, 0, size);
  return {
    async read(buffer, offset, length, position) {
      const end = Math.min(bytes.length, position + length);
      return { bytesRead: position >= end ? 0 : bytes.copy(buffer, offset, position, end) };
    },
  };
}

/**
 * The whole lines between two offsets, in groups as they are read. What stands after the last line's end is a write
 * that was cut short, and not a line.
 */
export async function* readLines(source: ByteSource, from: number, to: number): AsyncGenerator<RawLine[], undefined> {
  const open = new OpenLine(from);
  for (let at = from; at < to; ) {
    const chunk = await readChunk(source, at, Math.min(CHUNK_BYTES, to - at));
    if (chunk.length === 0) return;
    const lines: RawLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      lines.push(open.finish(chunk.subarray(start, end)));
      start = end + 1;
    }
    open.add(chunk.subarray(start));
    at += chunk.length;
    if (lines.length > 0) yield lines;
  }
}

/** The lines before an offset at which a line begins, the last one first, in groups as they are read. */
export async function* readLinesBackward(
  source: ByteSource,
  from: number,
  downTo: number,
): AsyncGenerator<RawLine[], undefined> {
  let size = BACKWARD_CHUNK_BYTES;
  let end = from;
  // What is known of the line that begins before the chunk, without its end; null until its end has been seen.
  let rest: Buffer[] | null = null;
  for (let at = from; at > downTo; ) {
    const length = Math.min(size, at - downTo);
    const chunk = await readChunk(source, at - length, length);
    if (chunk.length < length) return;
    at -= length;
    const lines: RawLine[] = [];
    let stop = chunk.length;
    for (
      let newline = chunk.lastIndexOf(NEWLINE);
      newline >= 0;
      newline = newline === 0 ? -1 : chunk.lastIndexOf(NEWLINE, newline - 1)
    ) {
      if (rest !== null) {
        lines.push(backwardLine([chunk.subarray(newline + 1, stop), ...rest], at + newline + 1, end));
        end = at + newline + 1;
      }
      rest = [];
      stop = newline;
    }
    if (rest === null) return;
    rest.unshift(chunk.subarray(0, stop));
    if (at === downTo) lines.push(backwardLine(rest, at, end));
    if (lines.length > 0) yield lines;
    size = Math.min(size * 2, CHUNK_BYTES * 4);
  }
}

/** As many bytes as there are, up to `length`. */
export async function readChunk(source: ByteSource, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await source.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled === length ? buffer : buffer.subarray(0, filled);
}

/** How many lines end before an offset. */
export async function countLines(source: ByteSource, to: number): Promise<number> {
  let count = 0;
  for await (const lines of readLines(source, 0, to)) count += lines.length;
  return count;
}

/** A line whose end has not been seen yet. */
class OpenLine {
  #offset: number;
  #length = 0;
  #parts: Buffer[] = [];

  constructor(offset: number) {
    this.#offset = offset;
  }

  add(part: Buffer): void {
    if (part.length === 0) return;
    this.#length += part.length;
    if (this.#length <= LINE_BYTES_MAX) this.#parts.push(part);
    else this.#parts = [Buffer.from(Buffer.concat(this.#parts.slice(0, 1)).subarray(0, BEGINNING_BYTES))];
  }

  finish(part: Buffer): RawLine {
    const whole = this.#parts.length === 0;
    if (!whole) this.add(part);
    const bytes = whole ? part : Buffer.concat(this.#parts);
    const length = (whole ? part.length : this.#length) + 1;
    const line = { offset: this.#offset, length, bytes };
    this.#offset += length;
    this.#length = 0;
    this.#parts = [];
    return line;
  }
}

function backwardLine(parts: readonly Buffer[], offset: number, end: number): RawLine {
  const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  return { offset, length: end - offset, bytes };
}
