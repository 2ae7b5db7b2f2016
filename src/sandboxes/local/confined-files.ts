import { constants, type Dirent, type Stats } from "node:fs";
import { type FileHandle, lstat, open, opendir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { WorkSlices } from "../../internal/work-slices.ts";
import { show } from "../../session/errors.ts";
import { SandboxError, type SandboxFile } from "../../session/sandbox/sandbox.ts";
import type { Confinement } from "./confinement.ts";
import { isMissing, onPath } from "./file-failure.ts";
import { DEPTH_MAX, isScratch, removeTree, scratchName, tooDeep } from "./file-tree.ts";
import { type FileOwner, PinnedDirectory, pinIfExists } from "./pinned-directory.ts";

const READ_BYTES_MAX = 32 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const ITEMS_READ_AT_ONCE = 256;

/**
 * The files of a sandbox, by paths that cannot leave it.
 *
 * The links of a path are resolved first. Then the parent directory is opened, checked to be the resolved one and kept open,
 * and the last name is used without following links. So changes that a process of the sandbox makes meanwhile cannot lead
 * outside. Not covered: a hard link to a file outside is indistinguishable from a file of the sandbox.
 */
export class ConfinedFiles {
  readonly #confinement: Confinement;
  readonly #owner: FileOwner | null;

  /** New files belong to the `owner` (null: the account of this program). */
  constructor(confinement: Confinement, owner: FileOwner | null = null) {
    this.#confinement = confinement;
    this.#owner = owner;
  }

  async read(path: string, bytesMax: number = READ_BYTES_MAX): Promise<Uint8Array> {
    if (!Number.isSafeInteger(bytesMax) || bytesMax < 0) {
      throw new SandboxError("unsupported", `A limit of ${show(bytesMax)} bytes is not a whole number from 0 up.`);
    }
    return onPath(path, async () => {
      const realPath = await this.#confinement.resolve(path);
      await using directory = await PinnedDirectory.open(dirname(realPath));
      // Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      const file = await open(directory.at(basename(realPath)), flags);
      try {
        const stats = await file.stat();
        if (!stats.isFile()) throw notAFile(path);
        if (stats.size <= bytesMax) {
          const bytes = await readUpTo(file, stats.size, bytesMax);
          if (bytes !== null) return bytes;
        }
        throw new SandboxError("output_truncated", `The file ${show(path)} is larger than ${bytesMax} bytes.`);
      } finally {
        await file.close();
      }
    });
  }

  async write(path: string, data: string | Uint8Array): Promise<void> {
    if (typeof data !== "string" && !(data instanceof Uint8Array)) {
      throw new SandboxError("unsupported", `The data for ${show(path)} is neither a text nor bytes.`);
    }
    await onPath(path, async () => {
      const realPath = await this.#confinement.resolve(path);
      if (realPath === this.#confinement.root) throw notAFile(path);
      await using directory = await PinnedDirectory.make(dirname(realPath), this.#owner);
      const target = directory.at(basename(realPath));
      const present = await lstatIfThere(target);
      if (present !== null && !present.isFile()) throw notAFile(path);
      const scratch = directory.at(scratchName("tmp"));
      try {
        await writeNew(scratch, data, present === null ? null : present.mode & 0o7777, this.#owner);
        await rename(scratch, target);
      } catch (error) {
        await unlink(scratch).catch(() => {});
        throw error;
      }
    });
  }

  async list(
    path: string,
    { recursive = false, limit = Number.POSITIVE_INFINITY }: { recursive?: boolean; limit?: number },
  ): Promise<SandboxFile[]> {
    if (typeof limit !== "number" || !(limit >= 0)) {
      throw new SandboxError("unsupported", `A limit of ${show(limit)} items is not a number from 0 up.`);
    }
    return onPath(path, async () => {
      const realPath = await this.#confinement.resolve(path);
      if (!(await stat(realPath)).isDirectory()) {
        throw new SandboxError("os_error", `The path ${show(path)} is not a directory, so it has no items.`);
      }
      const files: SandboxFile[] = [];
      const hidden = new Set(await this.#confinement.hidden());
      await using directory = await PinnedDirectory.open(realPath);
      await collect(
        { directory, realPath, path: this.#confinement.nameOf(path, realPath) },
        { recursive, limit, hidden, depth: 0 },
        files,
      );
      return files;
    });
  }

  async exists(path: string): Promise<boolean> {
    return onPath(path, async () => {
      const realPath = await this.#confinement.resolve(path);
      await using directory = await pinIfExists(dirname(realPath));
      return directory !== null && (await lstatIfThere(directory.at(basename(realPath)))) !== null;
    });
  }

  async remove(path: string): Promise<boolean> {
    return onPath(path, async () => {
      const realPath = await this.#confinement.resolveItem(path);
      if (await this.#confinement.containsProtected(realPath)) {
        throw new SandboxError(
          "not_permitted",
          `The path ${show(path)} is or holds a root of the sandbox or Skein's own files, and stays.`,
        );
      }
      try {
        await using directory = await PinnedDirectory.open(dirname(realPath));
        return await removeTree(directory, basename(realPath));
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    });
  }

  /** Opens the working directory for a command and keeps it open. */
  async pinDirectory(path: string): Promise<{ readonly realPath: string; readonly pinned: PinnedDirectory }> {
    return onPath(path, async () => {
      const realPath = await this.#confinement.resolve(path);
      if (!(await stat(realPath)).isDirectory()) {
        throw new SandboxError("os_error", `The path ${show(path)} is not a directory, so no command can run in it.`);
      }
      return { realPath, pinned: await PinnedDirectory.open(realPath) };
    });
  }
}

/** The bytes of a file; null if it has more than `bytesMax`. Its size may have changed since `sizeBytes` was read. */
async function readUpTo(file: FileHandle, sizeBytes: number, bytesMax: number): Promise<Uint8Array | null> {
  let bytes = new Uint8Array(Math.min(sizeBytes, bytesMax) + 1);
  let used = 0;
  for (;;) {
    const { bytesRead } = await file.read(bytes, used, bytes.length - used, used);
    used += bytesRead;
    if (used > bytesMax) return null;
    if (bytesRead === 0) return bytes.slice(0, used);
    if (used === bytes.length) {
      const larger = new Uint8Array(Math.min(bytes.length * 2 + CHUNK_BYTES, bytesMax + 1));
      larger.set(bytes);
      bytes = larger;
    }
  }
}

async function writeNew(
  path: string,
  data: string | Uint8Array,
  mode: number | null,
  owner: FileOwner | null,
): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW);
  try {
    await file.writeFile(data);
    if (owner !== null) await file.chown(owner.uid, owner.gid);
    // After chown, which clears the setuid and setgid bits.
    if (mode !== null) await file.chmod(mode);
  } finally {
    await file.close();
  }
}

/**
 * Adds the items of a directory in the order of their paths. A directory has two sort keys: its name, and its name with a
 * slash for the items in it ("a", "a-b", "a/c").
 */
async function collect(
  {
    directory,
    realPath,
    path,
  }: { readonly directory: PinnedDirectory; readonly realPath: string; readonly path: string },
  options: {
    readonly recursive: boolean;
    readonly limit: number;
    readonly hidden: ReadonlySet<string>;
    readonly depth: number;
  },
  files: SandboxFile[],
): Promise<void> {
  if (options.depth > DEPTH_MAX) throw tooDeep();
  const below = { ...options, depth: options.depth + 1 };
  const hidden = new Set(
    [...options.hidden].filter((each) => dirname(each) === realPath).map((each) => basename(each)),
  );
  const items = await firstItems(directory, options.limit, (name) => !isScratch(name) && !hidden.has(name));
  const keys = items.map(({ name }) => name);
  if (options.recursive) for (const item of items) if (item.isDirectory()) keys.push(`${item.name}/`);
  for (const key of keys.sort(byCodeUnit)) {
    if (files.length >= options.limit) return;
    try {
      if (key.endsWith("/")) {
        const name = key.slice(0, -1);
        await using child = await directory.child(name);
        await collect({ directory: child, realPath: join(realPath, name), path: join(path, name) }, below, files);
      } else files.push(await describe(directory.at(key), join(path, key)));
    } catch (error) {
      // An item that was deleted after the directory was read is not listed.
      if (!isMissing(error)) throw error;
    }
  }
}

/**
 * The first items of a directory in sort order, up to a limit. A directory may have millions of items: they are read in
 * chunks, with at most twice the limit in memory.
 */
async function firstItems(
  directory: PinnedDirectory,
  limit: number,
  isListed: (name: string) => boolean,
): Promise<readonly Dirent[]> {
  const slices = new WorkSlices();
  let kept: Dirent[] = [];
  let last = null as string | null;
  const keepFirst = (): void => {
    kept = kept.sort((a, b) => byCodeUnit(a.name, b.name)).slice(0, limit);
    last = kept.length < limit ? null : (kept.at(-1)?.name ?? "");
  };
  for await (const item of await opendir(directory.realPath, { bufferSize: ITEMS_READ_AT_ONCE })) {
    if ((last !== null && item.name > last) || !isListed(item.name)) continue;
    kept.push(item);
    if (kept.length < limit * 2 + ITEMS_READ_AT_ONCE) continue;
    keepFirst();
    await slices.pause();
  }
  keepFirst();
  return kept;
}

async function describe(realPath: string, path: string): Promise<SandboxFile> {
  const stats = await lstat(realPath);
  const type = stats.isFile()
    ? "file"
    : stats.isDirectory()
      ? "directory"
      : stats.isSymbolicLink()
        ? "symlink"
        : "other";
  return { path, type, sizeBytes: stats.size };
}

async function lstatIfThere(realPath: string): Promise<Stats | null> {
  try {
    return await lstat(realPath);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function notAFile(path: string): SandboxError {
  return new SandboxError("os_error", `The path ${show(path)} is not a file.`);
}
