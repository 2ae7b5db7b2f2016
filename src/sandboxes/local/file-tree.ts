import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  utimes,
} from "node:fs/promises";
import { uuidv7 } from "../../internal/uuid.ts";
import { failureCode, isMissing } from "./file-failure.ts";
import { type PinnedDirectory, placeOf } from "./pinned-directory.ts";

const SCRATCH = /^\.skein-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\./;
const COPIES_MAX = 16;
const MODE_BITS = 0o7777;
const OWNER_BITS = 0o700;

/** How much a copied tree holds. */
export interface TreeSize {
  readonly files: number;
  readonly sizeBytes: number;
}

/** A new name for a file that is there for a moment only; a listing and a snapshot leave it out. */
export function scratchName(ending: string): string {
  return `.skein-${uuidv7()}.${ending}`;
}

/** Whether a name was made by `scratchName`. */
export function isScratch(name: string): boolean {
  return SCRATCH.test(name);
}

/** Removes an item of a directory with all in it; false when there was none. Links are removed, not followed. */
export async function removeTree(parent: PinnedDirectory, name: string): Promise<boolean> {
  const path = parent.at(name);
  try {
    const stats = await lstat(path);
    if (stats.isDirectory()) {
      // A directory that may not be written to, or not be read, could not be emptied.
      if ((stats.mode & OWNER_BITS) !== OWNER_BITS) await chmod(path, OWNER_BITS);
      await emptyChild(parent, name);
      await rmdir(path);
    } else await unlink(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Moves an item from one directory to another of the same file system. */
export async function moveItem(from: PinnedDirectory, to: PinnedDirectory, name: string): Promise<void> {
  const stats = await lstat(from.at(name));
  const writable = !stats.isDirectory() || (stats.mode & OWNER_BITS) === OWNER_BITS;
  // A directory that may not be written to may not be moved either, since it names its parent.
  if (!writable) await chmod(from.at(name), OWNER_BITS);
  await rename(from.at(name), to.at(name));
  if (!writable) await chmod(to.at(name), stats.mode & MODE_BITS);
}

/** Removes all items of a directory but these. */
export async function emptyTree(directory: PinnedDirectory, ...except: readonly (string | null)[]): Promise<void> {
  for (const name of await readdir(directory.place)) {
    if (!except.includes(name)) await removeTree(directory, name);
  }
}

async function emptyChild(parent: PinnedDirectory, name: string): Promise<void> {
  await using directory = await parent.child(name);
  await emptyTree(directory);
}

/**
 * Copies the items of a directory into an empty one: files with mode and time, directories, and links as links.
 * Sockets, pipes and devices are left out, as is what disappears meanwhile, and one item of the directory that is named.
 */
export async function copyTree(
  from: PinnedDirectory,
  to: PinnedDirectory,
  except: string | null = null,
): Promise<TreeSize> {
  const names = (await readdir(from.place)).filter((name) => !isScratch(name) && name !== except);
  let total: TreeSize = { files: 0, sizeBytes: 0 };
  for (let at = 0; at < names.length; at += COPIES_MAX) {
    const sizes = await Promise.all(names.slice(at, at + COPIES_MAX).map((name) => copyItem(from, to, name)));
    total = sizes.reduce(add, total);
  }
  return total;
}

async function copyItem(from: PinnedDirectory, to: PinnedDirectory, name: string): Promise<TreeSize> {
  const nothing = { files: 0, sizeBytes: 0 };
  try {
    const stats = await lstat(from.at(name));
    if (stats.isSymbolicLink()) await symlink(await readlink(from.at(name)), to.at(name));
    else if (stats.isDirectory()) return await copyDirectory(from, to, name, stats.mode);
    else if (stats.isFile()) return await copyOneFile(from, to, name);
    return nothing;
  } catch (error) {
    if (failureCode(error) === "ENOENT") return nothing;
    throw error;
  }
}

async function copyDirectory(
  from: PinnedDirectory,
  to: PinnedDirectory,
  name: string,
  mode: number,
): Promise<TreeSize> {
  await using source = await from.child(name);
  await to.makeChild(name, OWNER_BITS);
  const size = await copyInto(source, to, name);
  // Only now, since nothing could be put into a directory that may not be written to.
  await chmod(to.at(name), mode & MODE_BITS);
  return size;
}

async function copyInto(source: PinnedDirectory, to: PinnedDirectory, name: string): Promise<TreeSize> {
  await using target = await to.child(name);
  return await copyTree(source, target);
}

async function copyOneFile(from: PinnedDirectory, to: PinnedDirectory, name: string): Promise<TreeSize> {
  const source = await open(from.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await source.stat();
    if (!stats.isFile()) return { files: 0, sizeBytes: 0 };
    await copyFile(placeOf(source, from.at(name)), to.at(name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await utimes(to.at(name), stats.atime, stats.mtime);
    return { files: 1, sizeBytes: stats.size };
  } finally {
    await source.close();
  }
}

function add(one: TreeSize, other: TreeSize): TreeSize {
  return { files: one.files + other.files, sizeBytes: one.sizeBytes + other.sizeBytes };
}
