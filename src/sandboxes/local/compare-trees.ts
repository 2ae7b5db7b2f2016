import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import type { FileChange, FileChanges } from "../../session/sandbox/sandbox.ts";
import type { PinnedDirectory } from "./pinned-directory.ts";

const CHANGES_MAX = 1000;
/** Maximum size of a file whose text is included. */
const TEXT_BYTES_MAX = 64 * 1024;
/** Maximum bytes of all texts together. */
const TEXTS_BYTES_MAX = 2 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const MODE_BITS = 0o7777;

/**
 * The differences between two directories, which must not change meanwhile. Links are not followed; their targets are
 * compared. Large files are compared in chunks.
 */
export async function compareTrees(from: PinnedDirectory, to: PinnedDirectory): Promise<FileChanges> {
  const comparison = new Comparison();
  await comparison.walk("", from, to);
  return comparison.result();
}

/** An item of a directory. */
interface Item {
  readonly directory: PinnedDirectory;
  readonly name: string;
  readonly stats: Stats;
}

class Comparison {
  readonly #changes: FileChange[] = [];
  #textBytesLeft = TEXTS_BYTES_MAX;
  #truncated = false;

  result(): FileChanges {
    const changes = this.#changes.sort((one, other) => (one.path < other.path ? -1 : 1));
    return { changes, truncated: this.#truncated };
  }

  /** Compares the items of two directories; null stands for a missing one. */
  async walk(path: string, from: PinnedDirectory | null, to: PinnedDirectory | null): Promise<void> {
    const [before, after] = [await namesIn(from), await namesIn(to)];
    for (const name of [...new Set([...before, ...after])].sort()) {
      if (this.#truncated) return;
      const old = from !== null && before.has(name) ? await itemOf(from, name) : null;
      const now = to !== null && after.has(name) ? await itemOf(to, name) : null;
      await this.#compare(path === "" ? name : `${path}/${name}`, old, now);
    }
  }

  async #compare(path: string, before: Item | null, after: Item | null): Promise<void> {
    const known = this.#changes.length;
    const isParent = isDirectory(before) || isDirectory(after);
    if (isParent) {
      await using from = isDirectory(before) ? await before.directory.child(before.name) : null;
      await using to = isDirectory(after) ? await after.directory.child(after.name) : null;
      await this.walk(path, from, to);
    }
    if (before !== null && after !== null) {
      if (!(await isSame(before, after))) await this.#add(path, "changed", before, after);
      return;
    }
    // A directory is not listed itself if an item in it is.
    if (isParent && this.#changes.length > known) return;
    await this.#add(path, before === null ? "added" : "removed", before, after);
  }

  async #add(path: string, change: FileChange["change"], before: Item | null, after: Item | null): Promise<void> {
    if (this.#changes.length === CHANGES_MAX) {
      this.#truncated = true;
      return;
    }
    this.#changes.push({ path, change, ...(await this.#textsOf(before, after)) });
  }

  async #textsOf(before: Item | null, after: Item | null): Promise<Pick<FileChange, "before" | "after">> {
    const items = [before, after].filter((item) => item !== null);
    const bytes = items.reduce((sum, { stats }) => sum + stats.size, 0);
    if (bytes > this.#textBytesLeft || items.some(({ stats }) => stats.size > TEXT_BYTES_MAX)) return {};
    const [old, now] = [before && (await textOf(before)), after && (await textOf(after))];
    if ((before !== null && old === null) || (after !== null && now === null)) return {};
    this.#textBytesLeft -= bytes;
    return { ...(old === null ? {} : { before: old }), ...(now === null ? {} : { after: now }) };
  }
}

async function namesIn(directory: PinnedDirectory | null): Promise<ReadonlySet<string>> {
  return new Set(directory === null ? [] : await readdir(directory.realPath));
}

async function itemOf(directory: PinnedDirectory, name: string): Promise<Item> {
  return { directory, name, stats: await lstat(directory.at(name)) };
}

function isDirectory(item: Item | null): item is Item {
  return item?.stats.isDirectory() ?? false;
}

/** Whether two items have the same type, mode and content. The items of directories are compared separately. */
async function isSame(before: Item, after: Item): Promise<boolean> {
  const [old, now] = [before.stats, after.stats];
  if (old.isSymbolicLink() && now.isSymbolicLink()) return (await targetOf(before)) === (await targetOf(after));
  if ((old.mode & MODE_BITS) !== (now.mode & MODE_BITS)) return false;
  if (old.isDirectory() && now.isDirectory()) return true;
  return old.isFile() && now.isFile() && old.size === now.size && hasSameBytes(before, after);
}

async function hasSameBytes(before: Item, after: Item): Promise<boolean> {
  const old = await openFile(before);
  try {
    const now = await openFile(after);
    try {
      return await readsAlike(old, now);
    } finally {
      await now.close();
    }
  } finally {
    await old.close();
  }
}

async function readsAlike(old: FileHandle, now: FileHandle): Promise<boolean> {
  const [one, other] = [Buffer.alloc(CHUNK_BYTES), Buffer.alloc(CHUNK_BYTES)];
  for (;;) {
    const [length, otherLength] = [await fill(old, one), await fill(now, other)];
    if (length !== otherLength || !one.subarray(0, length).equals(other.subarray(0, length))) return false;
    if (length < CHUNK_BYTES) return true;
  }
}

/** Reads until the buffer is full or the file ends, since one read may return fewer bytes. */
async function fill(file: FileHandle, buffer: Buffer): Promise<number> {
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length;
}

/** The text of a small file, or the target of a link; null if it is not text. */
async function textOf(item: Item): Promise<string | null> {
  if (item.stats.isSymbolicLink()) return targetOf(item);
  if (!item.stats.isFile()) return null;
  const file = await openFile(item);
  try {
    const buffer = Buffer.alloc(TEXT_BYTES_MAX);
    const text = decode(buffer.subarray(0, await fill(file, buffer)));
    return text?.includes("\0") === true ? null : text;
  } finally {
    await file.close();
  }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function targetOf({ directory, name }: Item): Promise<string> {
  return readlink(directory.at(name));
}

function openFile({ directory, name }: Item): Promise<FileHandle> {
  return open(directory.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}
