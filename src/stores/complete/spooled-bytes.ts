import { createHash } from "node:crypto";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import type { BlobSource } from "../../session/blob.ts";

/** Up to so many bytes are kept in memory. */
const MEMORY_BYTES_MAX = 1024 * 1024;
const READ_BYTES = 64 * 1024;

/** Bytes that came as a stream, with their hash. Disposing releases them. */
export interface SpooledBytes extends BlobSource, AsyncDisposable {
  readonly hash: string;
}

/**
 * Reads a stream to its end, so that its bytes can be stored under their hash. Bytes beyond the memory limit go to an unlinked temporary
 * file, which the system deletes when the process ends or crashes.
 *
 * @throws {Error} what `tooLarge` returns, once there are more than `bytesMax` bytes.
 */
export async function spoolBytes(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
  tooLarge: (bytes: number) => Error,
): Promise<SpooledBytes> {
  const hash = createHash("sha256");
  const chunks: Uint8Array[] = [];
  let size = 0;
  let file: FileHandle | null = null;
  try {
    for await (const chunk of stream) {
      size += chunk.byteLength;
      if (size > bytesMax) throw tooLarge(size);
      hash.update(chunk);
      if (file === null && size <= MEMORY_BYTES_MAX) {
        chunks.push(Buffer.from(chunk));
        continue;
      }
      if (file === null) {
        file = await openNameless();
        await writeAll(file, Buffer.concat(chunks.splice(0)));
      }
      await writeAll(file, chunk);
    }
  } catch (error) {
    await file?.close();
    throw error;
  }
  const bytes = file === null ? Buffer.concat(chunks) : undefined;
  const opened = file;
  return {
    size,
    hash: hash.digest("hex"),
    ...(bytes === undefined ? {} : { bytes }),
    read: () => (opened === null ? once(bytes as Buffer) : readFile(opened, size)),
    [Symbol.asyncDispose]: async () => opened?.close(),
  };
}

/** Bytes in memory as a source. */
export function bytesSource(bytes: Uint8Array): BlobSource {
  return { size: bytes.byteLength, bytes, read: () => once(bytes) };
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) at += (await file.write(bytes, at)).bytesWritten;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}

/** With one buffer for all pieces: new ones would take up to 64 MB before they are collected. */
async function* readFile(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at);
    if (bytesRead === 0) throw new Error("The temporary file of an upload became shorter.");
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

async function openNameless(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), "skein-upload-"));
  try {
    return await open(join(folder, "bytes"), "wx+", PRIVATE_FILE_MODE);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
