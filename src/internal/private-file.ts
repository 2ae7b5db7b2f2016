import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { type FileHandle, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** How a directory is made that only its owner can look into. */
export const PRIVATE_DIRECTORY: { readonly mode: number } = Object.freeze({ mode: 0o700 });
/** The mode of a file that only its owner can read. */
export const PRIVATE_FILE_MODE = 0o600;
/** What anyone but the owner may do with a file. */
const OTHERS = 0o077;
const KEPT = 0o7700;

/**
 * Makes a directory, and those above it that are missing, for its owner alone, whatever the umask. One that is there
 * stays as it is: who made it may have meant it for others.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { ...PRIVATE_DIRECTORY, recursive: true });
}

/** Opens a file to write to it that only its owner can read afterwards, whether it is new or was there. */
export async function openPrivateFile(path: string, flags: string | number): Promise<FileHandle> {
  const handle = await open(path, flags, PRIVATE_FILE_MODE);
  try {
    if (typeof flags === "number" || !flags.includes("x")) await keepPrivate(handle);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Writes a text to a file that only its owner can read. */
export async function writePrivateFile(
  path: string,
  text: string,
  { flag = "w", flush = false }: { readonly flag?: "w" | "wx" | "a"; readonly flush?: boolean } = {},
): Promise<void> {
  const handle = await openPrivateFile(path, flag);
  try {
    await handle.writeFile(text);
    if (flush) await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes a file, or replaces the one that is there, in one go; the directory is made where it is missing. */
export async function replacePrivateFile(
  path: string,
  text: string,
  options: { readonly flush?: boolean } = {},
): Promise<void> {
  await makePrivateDirectory(dirname(path));
  await writePrivateFile(`${path}.tmp`, text, options);
  await rename(`${path}.tmp`, path);
}

/** Takes away what others may do with an open file, where it is ours to change. */
async function keepPrivate(handle: FileHandle): Promise<void> {
  const stats = await handle.stat();
  // Some file systems know no modes, and refuse to be told one.
  if (isTooWide(stats)) await handle.chmod(stats.mode & KEPT).catch(() => {});
}

/**
 * Makes a file for its owner alone before a library opens it by its name, or takes from others what they may do with it.
 *
 * A file that is there is never opened here: closing it again would free the locks that this process holds on it.
 */
export function claimPrivateFile(path: string): void {
  try {
    // In one go, so that no one in this process can lock the file before it is closed.
    closeSync(openSync(path, "wx", PRIVATE_FILE_MODE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    narrowPrivateFile(path);
  }
}

/** Takes away what others may do with a file that may be there, where it is ours to change. */
export function narrowPrivateFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true && isTooWide(stats)) chmodSync(path, stats.mode & KEPT);
}

interface FileStats {
  readonly mode: number;
  readonly uid: number;
}

function isTooWide({ mode, uid }: FileStats): boolean {
  return (mode & OTHERS) !== 0 && process.getuid !== undefined && process.getuid() === uid;
}
