const BLOCK_BYTES = 512;

/** A file of an archive. */
export interface ArchivedFile {
  /** At most 100 characters of ASCII, with slashes. */
  readonly name: string;
  readonly content: Uint8Array;
}

/** An archive of files as `tar` reads it (ustar), in pieces; `modifiedAt` is the time of all of them. */
export async function* tarOf(files: AsyncIterable<ArchivedFile>, modifiedAt: Date): AsyncGenerator<Uint8Array> {
  for await (const { name, content } of files) {
    yield headerOf(name, content.length, modifiedAt);
    yield content;
    yield new Uint8Array(-content.length & (BLOCK_BYTES - 1));
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function headerOf(name: string, bytes: number, modifiedAt: Date): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;
  header.write(name, 0, 100, "ascii");
  header.write(octal(0o600, 8) + octal(0, 8) + octal(0, 8), 100, "ascii");
  header.write(octal(bytes, 12) + octal(Math.floor(modifiedAt.getTime() / 1000), 12), 124, "ascii");
  // The sum is taken with spaces in its own place.
  header.write("        0", 148, "ascii");
  header.write("ustar\x0000", 257, "ascii");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return header;
}
