/** How much of one stream of a command's output is kept: half of it from the beginning, half from the end. */
export const OUTPUT_BYTES_MAX: number = 256 * 1024;

/** Keeps the beginning and the end of a stream in bounded memory. */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  /** The last bytes after the head, in a ring buffer; the next byte goes to `#tailBytes` modulo its length. */
  #tail: Uint8Array | null = null;
  #tailBytes = 0;

  constructor(bytesMax: number = OUTPUT_BYTES_MAX) {
    this.#headMax = Math.ceil(bytesMax / 2);
    this.#tailMax = bytesMax - this.#headMax;
  }

  /** Whether bytes were omitted. */
  get truncated(): boolean {
    return this.#tailBytes > this.#tailMax;
  }

  write(chunk: Uint8Array): void {
    const room = Math.min(this.#headMax - this.#headBytes, chunk.length);
    if (room > 0) {
      // A copy: the chunk may be a view of a much larger buffer.
      this.#head.push(chunk.slice(0, room));
      this.#headBytes += room;
    }
    if (chunk.length > room) this.#writeTail(chunk.subarray(room));
  }

  /** The text. A line states how many bytes were omitted; characters are not split there. */
  text(): string {
    const head = Buffer.concat(this.#head);
    const tail = this.#tailInOrder();
    if (!this.truncated) return Buffer.concat([head, tail]).toString("utf8");
    const headEnd = wholeCharactersEnd(head);
    const tailStart = characterStart(tail);
    const leftOut = this.#headBytes + this.#tailBytes - headEnd - (tail.length - tailStart);
    const line = `\n[${leftOut} bytes were left out here]\n`;
    return head.toString("utf8", 0, headEnd) + line + tail.toString("utf8", tailStart);
  }

  #writeTail(bytes: Uint8Array): void {
    if (this.#tailMax > 0) {
      this.#tail ??= new Uint8Array(this.#tailMax);
      const kept = bytes.subarray(Math.max(0, bytes.length - this.#tailMax));
      const start = (this.#tailBytes + bytes.length - kept.length) % this.#tailMax;
      const first = kept.subarray(0, this.#tailMax - start);
      this.#tail.set(first, start);
      this.#tail.set(kept.subarray(first.length), 0);
    }
    this.#tailBytes += bytes.length;
  }

  #tailInOrder(): Buffer {
    if (this.#tail === null) return Buffer.alloc(0);
    if (!this.truncated) return Buffer.from(this.#tail.subarray(0, this.#tailBytes));
    const start = this.#tailBytes % this.#tailMax;
    return Buffer.concat([this.#tail.subarray(start), this.#tail.subarray(0, start)]);
  }
}

/** The end of the last complete UTF-8 character; bytes that are not UTF-8 are kept. */
function wholeCharactersEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return bytes.length;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** The start of the first complete UTF-8 character. */
function characterStart(bytes: Uint8Array): number {
  let at = 0;
  while (at < Math.min(3, bytes.length) && ((bytes[at] as number) & 0xc0) === 0x80) at += 1;
  return at;
}
