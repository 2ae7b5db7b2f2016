import { existsSync, fsync, futimesSync, mkdirSync, writeSync } from "node:fs";
import { open, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { promisify } from "node:util";
import { PRIVATE_DIRECTORY } from "../../internal/private-file.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import type { LogIdentity } from "./log-index.ts";
import { formatLine } from "./log-line.ts";
import { type LogPrefix, openLog } from "./log-state.ts";
import { INDEX_FOLDER } from "./file-names.ts";
import { OpenFile, readChunk } from "./read-lines.ts";
import { missingAsNull, storeFailed } from "./store-failure.ts";

const PIECE_BYTES = 1024 * 1024;
/** A temporary file of this age belongs to a process that was killed. */
const LEFTOVER_MS_MIN = 10 * 60 * 1000;

/**
 * Writes a file atomically: to a temporary file, which is then renamed. With `replaces`, the caller holds the lock of the
 * file that is replaced; without it, that of the directory. `locked` may acquire the lock after the content was written, so
 * that the lock is held only for the rename.
 *
 * @throws {SessionError} `SESSION_EXISTS` if there is a file with this name and `replaces` is false.
 */
export async function writeFileAtomically<T = void>(
  path: string,
  write: (fd: number) => Promise<unknown>,
  { durability, clock, replaces }: Pick<JsonlSettings, "durability" | "clock"> & { readonly replaces: boolean },
  locked: (put: () => Promise<void>) => Promise<T> = (put) => put() as Promise<T>,
): Promise<T> {
  const folder = join(dirname(path), INDEX_FOLDER);
  const temporary = join(folder, `${basename(path)}.${uuidv7()}.tmp`);
  mkdirSync(folder, { ...PRIVATE_DIRECTORY, recursive: true });
  try {
    {
      using file = new OpenFile(temporary, "wx");
      await write(file.fd);
    }
    return await locked(async () => {
      {
        // Set the time only now: with an older time of the store's clock, another process could remove the file as a leftover.
        using file = new OpenFile(temporary, "r+");
        setTime(file.fd, clock());
        if (durability === "fsync") await promisify(fsync)(file.fd);
      }
      if (!replaces && existsSync(path))
        throw new SessionError("SESSION_EXISTS", `There is already a file ${show(path)}; use another id.`);
      await rename(temporary, path);
      if (durability === "fsync") await syncDirectoryOf(path);
    });
  } catch (cause) {
    throw cause instanceof SessionError ? cause : storeFailed(`${path} could not be created`, cause);
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/** Removes the temporary files of processes that were killed while they wrote. */
export async function removeTemporaryFiles(directory: string): Promise<void> {
  const folder = join(directory, INDEX_FOLDER);
  for (const name of (await readdir(folder).catch(missingAsNull)) ?? []) {
    if (!name.endsWith(".tmp")) continue;
    const path = join(folder, name);
    const stats = await stat(path).catch(missingAsNull);
    if (stats !== null && Date.now() - stats.mtimeMs > LEFTOVER_MS_MIN) await unlink(path).catch(missingAsNull);
  }
}

/** Syncs a file's directory, so that the name survives a power cut. */
export async function syncDirectoryOf(path: string): Promise<void> {
  const handle = await open(dirname(path), "r").catch(() => null);
  // Some systems cannot sync a directory; ignore that.
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/**
 * Sets a file's modification time to that of an append, so that readers get the same `updatedAt` as the writer. Adds half a
 * millisecond, since the system may round down.
 */
export function setTime(fd: number, time: Date): void {
  const seconds = (time.getTime() + 0.5) / 1000;
  futimesSync(fd, seconds, seconds);
}

/** Writes data at an offset, or at the current position, or throws if not all could be written. Returns the length in bytes. */
export function writeAll(fd: number, data: Buffer | string, at: number | null = null): number {
  const length = Buffer.byteLength(data);
  const count = typeof data === "string" ? writeSync(fd, data, at) : writeSync(fd, data, 0, length, at);
  if (count !== length) throw new Error(`only ${count} of ${length} bytes could be written`);
  return count;
}

/** Writes lines in large pieces, and yields to the event loop between them. Returns the length in bytes. */
export async function writeLines(fd: number, lines: Iterable<string>): Promise<number> {
  let text = "";
  let bytes = 0;
  for (const line of lines) {
    text += `${line}\n`;
    if (text.length < PIECE_BYTES) continue;
    bytes += writeAll(fd, text);
    text = "";
    await yieldToEventLoop();
  }
  return bytes + writeAll(fd, text);
}

/** Writes a log with another header and the first entries of this one. */
export async function copyLog(
  identity: LogIdentity,
  { offset, rest }: LogPrefix,
  header: SessionHeader,
  to: number,
): Promise<void> {
  writeAll(to, `${JSON.stringify(header)}\n`);
  using from = openLog(identity);
  for (let at = identity.headerEnd; at < offset; ) {
    const chunk = readChunk(from.fd, at, Math.min(PIECE_BYTES, offset - at));
    if (chunk.length === 0) throw new Error(`${identity.paths.log} is shorter than it was`);
    writeAll(to, chunk);
    at += chunk.length;
    if (at < offset) await yieldToEventLoop();
  }
  if (rest.length > 0) writeAll(to, formatLine(rest));
}
