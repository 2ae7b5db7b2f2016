import type { FileHandle } from "node:fs/promises";

const WRITE_BYTES = 1024 * 1024;

/** Writes all of the bytes, or throws. */
export async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  const { bytesWritten } = await handle.write(bytes);
  if (bytesWritten !== bytes.length) throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`);
}

/** Writes lines in large pieces. */
export async function writeLines(handle: FileHandle, lines: Iterable<string>): Promise<void> {
  let text = "";
  for (const line of lines) {
    text += `${line}\n`;
    if (text.length < WRITE_BYTES) continue;
    await writeAll(handle, Buffer.from(text));
    text = "";
  }
  await writeAll(handle, Buffer.from(text));
}
