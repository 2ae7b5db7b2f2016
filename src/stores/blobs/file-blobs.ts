import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { PRIVATE_DIRECTORY, PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import { hasHolderEnded, thisProcess } from "../../internal/process-identity.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { nextSlice } from "../../internal/long-work.ts";
import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { type BlobKey, type ListedBlob, type BlobSource, type BlobStore, missingBlob } from "../../session/blob.ts";
import { SessionError } from "../../session/errors.ts";

/** Options of `fileBlobs`. */
export interface FileBlobsOptions {
  /** `"flush"` (default): a blob survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Returns the current time (default: the system's clock). */
  readonly clock?: () => Date;
}

/** The folder of files that are being written. */
const TEMPORARY = ".tmp";
/** The end of the name of a blob that is being removed. */
const DYING = ".dying";
/** A temporary file of this age is left over, even if its process cannot be looked up. */
const LEFTOVER_MS_MIN = 60 * 60 * 1000;
const READ_BYTES = 256 * 1024;
/** Larger blobs are written in pieces, so that other tasks run in between. */
const SLICE_BYTES = 4 * 1024 * 1024;
const HASH = /^[0-9a-f]{64}$/;
const ATTEMPTS_MAX = 5;
const SYNCED_MAX = 10_000;

/**
 * Keeps blobs as files of a directory. Several processes can use it concurrently. It is created with the first blob; directories
 * have the mode 0700, files 0600.
 *
 * @throws {SessionError} `INVALID_OPTION`.
 */
export function fileBlobs(directory: string, options: FileBlobsOptions = {}): BlobStore {
  checkOptionsOf(options, { durability: true, clock: true } satisfies KeysOf<FileBlobsOptions>, "fileBlobs");
  if (typeof directory !== "string" || directory === "" || directory.includes("\0"))
    throw new SessionError("INVALID_OPTION", "fileBlobs needs the path of a directory.");
  return new FileBlobs(resolve(directory), options);
}

/**
 * A blob is a file `<scope>/<first two digits>/<hash>`; its time of modification is that of its last renewal.
 *
 * Renewing and removing exclude each other without a lock: a removal first renames the file, then looks at its time again, and
 * puts it back if that has changed. A renewal that finds the renamed file puts it back itself.
 */
class FileBlobs implements BlobStore {
  readonly #directory: string;
  readonly #durability: "flush" | "fsync";
  readonly #clock: () => Date;
  /** By folder and inode: what was synced with the folder that has it. */
  readonly #synced = new LruCache<string, true>(SYNCED_MAX);

  constructor(directory: string, { durability = "flush", clock = () => new Date() }: FileBlobsOptions) {
    this.#directory = directory;
    this.#durability = durability;
    this.#clock = clock;
  }

  async put(key: BlobKey, source: BlobSource): Promise<void> {
    if ((await this.renew(key)) !== null) return;
    const path = this.#pathOf(key);
    const temporary = join(this.#directory, TEMPORARY, `${ownName()}.${uuidv7()}`);
    try {
      await this.#write(temporary, source);
      setTime(temporary, this.#now());
      inFolder(path, () => renameSync(temporary, path));
      if (this.#durability === "fsync") await this.#syncFolders(path);
    } catch (error) {
      ignoreMissing(() => unlinkSync(temporary));
      throw error;
    }
  }

  async renew(key: BlobKey): Promise<number | null> {
    const path = this.#pathOf(key);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const found = ignoreMissing(() => statSync(path));
      if (found !== null) {
        // Two renewals within one clock tick must differ.
        if (ignoreMissing(() => setTime(path, Math.max(this.#now(), found.mtimeMs + 1))) === null) continue;
        if (ignoreMissing(() => statSync(path)) !== null) return found.size;
      }
      if (!revive(path)) return null;
    }
    return null;
  }

  async size(key: BlobKey): Promise<number | null> {
    const path = this.#pathOf(key);
    return (ignoreMissing(() => statSync(path)) ?? ignoreMissing(() => statSync(path + DYING)))?.size ?? null;
  }

  async *read(key: BlobKey, start: number, end: number): AsyncGenerator<Uint8Array> {
    const path = this.#pathOf(key);
    const file = (await openOrNull(path)) ?? (await openOrNull(path + DYING)) ?? (await openOrNull(path));
    if (file === null) throw missingBlob(key);
    try {
      for (let at = start; at < end; ) {
        const length = Math.min(READ_BYTES, end - at);
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
        if (bytesRead === 0) throw new SessionError("STORE_FAILED", `${path} is shorter than it was.`);
        yield buffer.subarray(0, bytesRead);
        at += bytesRead;
      }
    } finally {
      await file.close();
    }
  }

  async remove(key: BlobKey, renewedAt: number): Promise<boolean> {
    const path = this.#pathOf(key);
    const dying = path + DYING;
    const found = ignoreMissing(() => statSync(path));
    if (found !== null && found.mtimeMs !== renewedAt) return false;
    // Without a file, there may be one that a removal which was killed has left.
    if (found !== null && ignoreMissing(() => renameSync(path, dying)) === null) return false;
    const taken = ignoreMissing(() => statSync(dying));
    if (taken === null) return false;
    if (taken.mtimeMs !== renewedAt) {
      revive(path);
      return false;
    }
    const removed = ignoreMissing(() => unlinkSync(dying)) !== null;
    if (this.#durability === "fsync") await syncFolder(dirname(path));
    removeEmpty(dirname(path));
    removeEmpty(dirname(dirname(path)));
    return removed;
  }

  /** Also removes the temporary files of processes that have ended. */
  async *list(scope?: string): AsyncGenerator<ListedBlob> {
    this.#removeLeftovers();
    const scopes =
      scope === undefined ? names(this.#directory).filter((name) => name !== TEMPORARY) : [folderOf(scope)];
    for (const folder of scopes) {
      for (const shard of names(join(this.#directory, folder))) {
        for (const hash of new Set(
          names(join(this.#directory, folder, shard)).map((name) => name.replace(DYING, "")),
        )) {
          const path = join(this.#directory, folder, shard, hash);
          const stats = ignoreMissing(() => statSync(path)) ?? ignoreMissing(() => statSync(path + DYING));
          if (stats === null || !HASH.test(hash)) continue;
          const { size, mtimeMs } = stats;
          yield { scope: scopeOf(folder), hash, size, renewedAt: mtimeMs, ageMs: this.#now() - mtimeMs };
        }
        await nextSlice();
      }
    }
  }

  #pathOf({ scope, hash }: BlobKey): string {
    return join(this.#directory, folderOf(scope), hash.slice(0, 2), hash);
  }

  async #write(path: string, source: BlobSource): Promise<void> {
    const fd = inFolder(path, () => openSync(path, "wx", PRIVATE_FILE_MODE));
    let written = 0;
    let slice = 0;
    try {
      for await (const chunk of source.read()) {
        for (let at = 0; at < chunk.byteLength; ) {
          const count = writeSync(fd, chunk, at, Math.min(SLICE_BYTES, chunk.byteLength - at));
          [at, written, slice] = [at + count, written + count, slice + count];
          if (slice >= SLICE_BYTES) slice = await nextSlice().then(() => 0);
        }
      }
      if (this.#durability === "fsync") fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    if (written !== source.size)
      throw new SessionError("STORE_FAILED", `A blob of ${source.size} bytes came with ${written} bytes.`);
  }

  /** Syncs the folder of a blob, and those above it unless that was done since they were made. */
  async #syncFolders(path: string): Promise<void> {
    const [shard, scope] = [dirname(path), dirname(dirname(path))];
    const above = [scope, dirname(scope)].filter((folder, index) => {
      const made = ignoreMissing(() => statSync(index === 0 ? shard : scope));
      return made === null || this.#synced.get(folder + made.ino) === undefined;
    });
    // At the same time, so that a file system with a journal writes it once.
    await Promise.all([shard, ...above].map(syncFolder));
    for (const [folder, inside] of [
      [scope, shard],
      [dirname(scope), scope],
    ] as const) {
      const made = ignoreMissing(() => statSync(inside));
      if (made !== null) this.#synced.set(folder + made.ino, true);
    }
  }

  #removeLeftovers(): void {
    const folder = join(this.#directory, TEMPORARY);
    for (const name of names(folder)) {
      const path = join(folder, name);
      const stats = ignoreMissing(() => statSync(path));
      const isOld = stats !== null && Date.now() - stats.ctimeMs > LEFTOVER_MS_MIN;
      if (isOld || hasHolderEnded(Buffer.from(name.split(".")[0] as string, "base64url").toString()))
        ignoreMissing(() => unlinkSync(path));
    }
  }

  #now(): number {
    return this.#clock().getTime();
  }
}

/** Puts a file back that is being removed; false if there is none. */
function revive(path: string): boolean {
  try {
    linkSync(path + DYING, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return false;
    // Some file systems have no links.
    if (code !== "EEXIST" && ignoreMissing(() => renameSync(path + DYING, path)) === null) return false;
  }
  ignoreMissing(() => unlinkSync(path + DYING));
  return true;
}

/** Runs a task that needs the folder of a path, which another process may remove while it is empty. */
function inFolder<T>(path: string, task: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return task();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === ATTEMPTS_MAX) throw error;
      mkdirSync(dirname(path), { ...PRIVATE_DIRECTORY, recursive: true });
    }
  }
}

/** A scope as the name of a folder, also where the case of names does not count. */
function folderOf(scope: string): string {
  return scope.replace(/[A-Z]/g, (letter) => `^${letter.toLowerCase()}`);
}

function scopeOf(folder: string): string {
  return folder.replace(/\^([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function ownName(): string {
  return Buffer.from(JSON.stringify(thisProcess)).toString("base64url");
}

function setTime(path: string, ms: number): void {
  utimesSync(path, ms / 1000, ms / 1000);
}

/** Some systems cannot sync a folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch(() => null);
  try {
    await handle?.sync();
  } catch {
  } finally {
    await handle?.close();
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {}
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

async function openOrNull(path: string): Promise<FileHandle | null> {
  return open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

/** The result of a file operation, or true if it has none; null if the file is missing. */
function ignoreMissing<T>(task: () => T): (T extends void ? true : T) | null {
  try {
    return (task() ?? true) as T extends void ? true : T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
