import { type FileHandle, link, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { openPrivateFile } from "../../internal/private-file.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { WriteOptions } from "./log-appender.ts";
import { missingAsNull } from "./log-file.ts";
import { exists } from "./session-directory.ts";
import { INDEX_FOLDER } from "./places.ts";
import { storeFailed } from "./store-failure.ts";
import { syncDirectoryOf } from "./sync-directory.ts";

/** How old something half made must be to belong to nobody. */
const LEFTOVER_MS_MIN = 10 * 60 * 1000;

type WriteFile = (handle: FileHandle) => Promise<void>;

/**
 * Makes a file that is there with all its content, or not at all, and never in place of another. Call it under the
 * directory's lock.
 *
 * @throws {SessionError} `SESSION_EXISTS` when there is a file of that name.
 */
export async function makeFile(path: string, write: WriteFile, options: WriteOptions): Promise<void> {
  await putFile(path, write, options, publish);
}

/** Puts a file in place of another, in one go. Call it under that file's lock. */
export async function replaceFile(path: string, write: WriteFile, options: WriteOptions): Promise<void> {
  await putFile(path, write, options, rename);
}

async function putFile(
  path: string,
  write: WriteFile,
  options: WriteOptions,
  put: (temporary: string, path: string) => Promise<void>,
): Promise<void> {
  const temporary = join(dirname(path), INDEX_FOLDER, `${basename(path)}.${uuidv7()}.tmp`);
  try {
    const handle = await openPrivateFile(temporary, "wx");
    try {
      await write(handle);
      if (options.setsTimes) await handle.utimes(options.clock(), options.clock());
      if (options.durability === "fsync") await handle.sync();
    } finally {
      await handle.close();
    }
    await put(temporary, path);
    if (options.durability === "fsync") await syncDirectoryOf(path);
  } catch (cause) {
    throw cause instanceof SessionError ? cause : storeFailed(`${path} could not be made`, cause);
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/** Removes what processes that were killed while they made a file have left of it. */
export async function removeHalfMade(directory: string): Promise<void> {
  const folder = join(directory, INDEX_FOLDER);
  const names = (await readdir(folder).catch(missingAsNull)) ?? [];
  for (const name of names) {
    if (!name.endsWith(".tmp")) continue;
    const path = join(folder, name);
    const stats = await stat(path).catch(missingAsNull);
    if (stats !== null && Date.now() - stats.mtimeMs > LEFTOVER_MS_MIN) await unlink(path).catch(missingAsNull);
  }
}

async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (cause) {
    const taken = (cause as NodeJS.ErrnoException).code === "EEXIST" || (await exists(path));
    if (taken)
      throw new SessionError("SESSION_EXISTS", `There is already a file ${show(path)}; use another id.`, { cause });
    // Where a file cannot have two names, the directory's lock keeps others from making the same one now.
    await rename(temporary, path);
  }
}
