import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { type FileHandle, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** The options of `mkdir` for a directory that only its owner can read. */
export const PRIVATE_DIRECTORY: { readonly mode: number } = Object.freeze({ mode: 0o700 });
/** The mode of a file that only its owner can read. */
export const PRIVATE_FILE_MODE = 0o600;
/** The permission bits of group and others. */
const OTHERS = 0o077;
const KEPT = 0o7700;

/**
 * Creates a directory and its missing parents with the mode 0700, whatever the umask. The mode of an existing directory is
 * not changed: it may be shared on purpose.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { ...PRIVATE_DIRECTORY, recursive: true });
}

/** Opens a new or existing file for writing, and restricts it to its owner. */
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

/** Writes a text to a file, and restricts it to its owner. */
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

/** Writes or replaces a file atomically, by renaming a temporary file. Creates the directory if it is missing. */
export async function replacePrivateFile(
  path: string,
  text: string,
  options: { readonly flush?: boolean } = {},
): Promise<void> {
  await makePrivateDirectory(dirname(path));
  await writePrivateFile(`${path}.tmp`, text, options);
  await rename(`${path}.tmp`, path);
}

/** Removes the permissions of group and others from an open file, if this user owns it. */
async function keepPrivate(handle: FileHandle): Promise<void> {
  const stats = await handle.stat();
  // Some file systems have no modes and refuse to set one; ignore that.
  if (isOpenToOthers(stats)) await handle.chmod(stats.mode & KEPT).catch(() => {});
}

/**
 * Creates a private file before a library opens it by its path, or restricts an existing one to its owner.
 *
 * An existing file is never opened here: closing it would release the POSIX locks that this process holds on it.
 */
export function claimPrivateFile(path: string): void {
  try {
    // Open and close synchronously, so that no other code of this process can lock the file in between.
    closeSync(openSync(path, "wx", PRIVATE_FILE_MODE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    narrowPrivateFile(path);
  }
}

/** Removes the permissions of group and others from a file, if it exists and this user owns it. */
export function narrowPrivateFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true && isOpenToOthers(stats)) chmodSync(path, stats.mode & KEPT);
}

interface FileStats {
  readonly mode: number;
  readonly uid: number;
}

function isOpenToOthers({ mode, uid }: FileStats): boolean {
  return (mode & OTHERS) !== 0 && process.getuid !== undefined && process.getuid() === uid;
}
