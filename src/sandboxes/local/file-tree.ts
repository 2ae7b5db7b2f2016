import { constants } from "node:fs";
import {
  copyFile,
  type FileHandle,
  lchown,
  lstat,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from "node:fs/promises";
import { uuidv7 } from "../../internal/uuid.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { failureCode, isMissing } from "./file-failure.ts";
import {
  type FileOwner,
  HeldDirectory,
  hasDescriptorPaths,
  type PinnedDirectory,
  descriptorPath,
} from "./pinned-directory.ts";

const SCRATCH = /^\.skein-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\./;
const COPIES_MAX = 16;
/** Maximum depth of listed or copied directories: each level uses a file descriptor, and a process has few. */
export const DEPTH_MAX = 200;
/** How many levels a removal keeps open. */
const REMOVED_DEPTH_MAX = 32;
const PASSES_MAX = 100_000;
const MODE_BITS = 0o7777;
const OWNER_BITS = 0o700;
const RUN_AS_BITS = 0o6000;
const CHUNK_BYTES = 1024 * 1024;
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The size of a copied tree. */
export interface TreeSize {
  readonly files: number;
  readonly sizeBytes: number;
}

/** A new name for a temporary file; listings and snapshots omit such files. */
export function scratchName(ending: string): string {
  return `.skein-${uuidv7()}.${ending}`;
}

/** Whether a name was made by `scratchName`. */
export function isScratch(name: string): boolean {
  return SCRATCH.test(name);
}

/** Removes an item of a directory recursively; false if it did not exist. Links are removed, not followed. */
export async function removeTree(parent: PinnedDirectory, name: string): Promise<boolean> {
  return await removeItem(parent, name, null);
}

/** The directory where a removal began, and the current depth below it. */
interface Removal {
  readonly top: PinnedDirectory;
  readonly depth: number;
}

async function removeItem(parent: PinnedDirectory, name: string, removal: Removal | null): Promise<boolean> {
  try {
    if ((await lstat(parent.at(name))).isDirectory()) {
      await unlock(parent, name);
      if (removal !== null && removal.depth >= REMOVED_DEPTH_MAX) {
        // Moved to the top and removed from there: so few directories are open, however deep the tree is.
        await rename(parent.at(name), removal.top.at(scratchName("removed")));
        return true;
      }
      await emptyChild(parent, name, removal);
      await rmdir(parent.at(name));
    } else await unlink(parent.at(name));
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Moves an item from one directory to another of the same file system. */
export async function moveItem(from: PinnedDirectory, to: PinnedDirectory, name: string): Promise<void> {
  if (!(await lstat(from.at(name))).isDirectory()) return await rename(from.at(name), to.at(name));
  await using held = await HeldDirectory.open(from, name);
  const locked = isLocked(held);
  // A read-only directory cannot be moved, since moving changes its `..` entry.
  if (locked) await held.setMode(OWNER_BITS);
  await rename(from.at(name), to.at(name));
  if (locked) await held.setMode(held.mode & MODE_BITS);
}

/** Gives the owner full access to a directory, so that it can be emptied. */
async function unlock(parent: PinnedDirectory, name: string): Promise<void> {
  await using held = await HeldDirectory.open(parent, name);
  if (isLocked(held)) await held.setMode(OWNER_BITS);
}

function isLocked({ mode }: HeldDirectory): boolean {
  return (mode & OWNER_BITS) !== OWNER_BITS;
}

/** Removes all items of a directory except these. */
export async function emptyTree(directory: PinnedDirectory, except: readonly string[] = []): Promise<void> {
  const isLeft = (name: string): boolean => !except.includes(name);
  let names = (await readdir(directory.realPath)).filter(isLeft);
  for (let pass = 0; names.length > 0 && pass < PASSES_MAX; pass++) {
    for (const name of names) await removeItem(directory, name, { top: directory, depth: 0 });
    // Repeat for items that were moved up meanwhile, but not for files that others create.
    names = (await readdir(directory.realPath)).filter((name) => isLeft(name) && isScratch(name));
  }
}

async function emptyChild(parent: PinnedDirectory, name: string, removal: Removal | null): Promise<void> {
  await using directory = await parent.child(name);
  if (removal === null) return await emptyTree(directory);
  for (const item of await readdir(directory.realPath)) {
    await removeItem(directory, item, { top: removal.top, depth: removal.depth + 1 });
  }
}

/**
 * Copies the items of a directory into an empty one: files with mode and time, directories, and links as links. Omits
 * sockets, pipes, devices, items that are deleted meanwhile, and the named items of the top directory. The copies belong to the
 * `owner` (null: the account of this program).
 */
export async function copyTree(
  from: PinnedDirectory,
  to: PinnedDirectory,
  except: readonly string[] = [],
  { owner = null, depth = 0 }: { readonly owner?: FileOwner | null; readonly depth?: number } = {},
): Promise<TreeSize> {
  if (depth > DEPTH_MAX) throw tooDeep();
  const names = (await readdir(from.realPath)).filter((name) => !isScratch(name) && !except.includes(name));
  let total: TreeSize = { files: 0, sizeBytes: 0 };
  for (let at = 0; at < names.length; at += COPIES_MAX) {
    const copies = names.slice(at, at + COPIES_MAX).map((name) => copyItem(from, to, name, { owner, depth }));
    total = (await allEnded(copies)).reduce(add, total);
  }
  return total;
}

/**
 * Like `Promise.all`, but rejects only after all have settled: a copy that continued after its directories were closed would
 * write into other directories that get the same file descriptors.
 */
async function allEnded<T>(copies: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(copies);
  return await Promise.all(copies);
}

async function copyItem(
  from: PinnedDirectory,
  to: PinnedDirectory,
  name: string,
  { owner, depth }: { readonly owner: FileOwner | null; readonly depth: number },
): Promise<TreeSize> {
  const nothing = { files: 0, sizeBytes: 0 };
  try {
    const stats = await lstat(from.at(name));
    if (stats.isSymbolicLink()) {
      await symlink(await readlink(from.at(name)), to.at(name));
      if (owner !== null) await lchown(to.at(name), owner.uid, owner.gid);
    } else if (stats.isDirectory()) return await copyDirectory(from, to, name, { mode: stats.mode, owner, depth });
    else if (stats.isFile()) return await copyOneFile(from, to, name, owner);
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
  { mode, owner, depth }: { readonly mode: number; readonly owner: FileOwner | null; readonly depth: number },
): Promise<TreeSize> {
  await using source = await from.child(name);
  await to.makeChild(name, OWNER_BITS);
  await using target = await to.child(name);
  const size = await copyTree(source, target, [], { owner, depth: depth + 1 });
  if (owner !== null) await target.setOwner(owner);
  // Set last: nothing could be copied into a read-only directory.
  await target.setMode(mode & MODE_BITS);
  return size;
}

async function copyOneFile(
  from: PinnedDirectory,
  to: PinnedDirectory,
  name: string,
  owner: FileOwner | null,
): Promise<TreeSize> {
  const source = await open(from.at(name), READ_FILE);
  try {
    const stats = await source.stat();
    if (!stats.isFile()) return { files: 0, sizeBytes: 0 };
    const target = await open(to.at(name), NEW_FILE, 0o600);
    try {
      await copyBytes(source, target);
      if (owner !== null) await target.chown(owner.uid, owner.gid);
      // A setuid program must not become setuid for another account.
      const sameOwner = (owner?.uid ?? process.getuid?.()) === stats.uid;
      await target.chmod(stats.mode & (sameOwner ? MODE_BITS : MODE_BITS & ~RUN_AS_BITS));
      await target.utimes(stats.atime, stats.mtime);
    } finally {
      await target.close();
    }
    return { files: 1, sizeBytes: stats.size };
  } finally {
    await source.close();
  }
}

/** Copies the content of an open file into an empty one; shares blocks (reflink) if the file system supports it. */
async function copyBytes(source: FileHandle, target: FileHandle): Promise<void> {
  if (hasDescriptorPaths) {
    // These paths refer to the open files, even if their names were replaced meanwhile.
    return await copyFile(descriptorPath(source, ""), descriptorPath(target, ""), constants.COPYFILE_FICLONE);
  }
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await source.read(chunk, 0, chunk.length, null);
    if (bytesRead === 0) return;
    await target.writeFile(chunk.subarray(0, bytesRead));
  }
}

/** The error for directories that are nested too deep. */
export function tooDeep(): SandboxError {
  return new SandboxError("os_error", `Directories nested deeper than ${DEPTH_MAX} levels cannot be listed or copied.`);
}

function add(one: TreeSize, other: TreeSize): TreeSize {
  return { files: one.files + other.files, sizeBytes: one.sizeBytes + other.sizeBytes };
}
