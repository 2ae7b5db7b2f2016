import { existsSync, constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { failureCode, isMissing } from "./file-failure.ts";

const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Opens a directory that may not even be read, to name it and no more; Linux alone has it, and Node does not list it. */
const O_PATH = 0o10000000;
/** Whether the system names open files, so that an open one can stand for a path. */
export const hasDescriptorPaths: boolean = existsSync("/proc/self/fd");

/** The account that a file is for. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * A directory held open, so that what is done in it stays in it when someone moves it or replaces it by a link.
 *
 * Where the system has no `/proc/self/fd`, the directory is named by its path, and a link that replaces it between
 * the check and the use is followed.
 */
export class PinnedDirectory implements AsyncDisposable {
  /** Where the directory is for system calls. */
  readonly realPath: string;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.realPath = placeOf(handle, path);
  }

  /** Opens a directory by a path in which no link is. @throws {SandboxError} `not_permitted` when there is one now. */
  static async open(path: string): Promise<PinnedDirectory> {
    const handle = await open(path, OPEN_DIRECTORY);
    try {
      const actual = hasDescriptorPaths ? await readlink(`/proc/self/fd/${handle.fd}`) : await realpath(path);
      if (actual !== path) {
        throw new SandboxError("not_permitted", `The directory ${show(path)} was replaced while it was being opened.`);
      }
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new PinnedDirectory(handle, path);
  }

  /** Opens a directory as `open` does, after making it and those above it that are missing, for an owner. */
  static async make(path: string, owner: FileOwner | null = null): Promise<PinnedDirectory> {
    const missing: string[] = [];
    let directory: PinnedDirectory | null = null;
    for (let at = path; directory === null; ) {
      try {
        directory = await PinnedDirectory.open(at);
      } catch (error) {
        if (failureCode(error) !== "ENOENT" || at === dirname(at)) throw error;
        missing.unshift(basename(at));
        at = dirname(at);
      }
    }
    for (const name of missing) directory = await directory.#descend(name, owner);
    return directory;
  }

  /** The path of an item, for system calls that do not follow a link at the end of it. */
  at(name: string): string {
    return join(this.realPath, name);
  }

  /** Opens a directory in this one; a link is refused. */
  async child(name: string): Promise<PinnedDirectory> {
    const path = this.at(name);
    return new PinnedDirectory(await open(path, OPEN_DIRECTORY), path);
  }

  /** Sets the mode of this directory, wherever it is by now. */
  async setMode(mode: number): Promise<void> {
    await this.#handle.chmod(mode);
  }

  /** Gives this directory to an account, wherever it is by now. */
  async setOwner({ uid, gid }: FileOwner): Promise<void> {
    await this.#handle.chown(uid, gid);
  }

  /** Makes a directory in this one, unless there is one; false when there was. */
  async makeChild(name: string, mode?: number): Promise<boolean> {
    try {
      await mkdir(this.at(name), mode);
      return true;
    } catch (error) {
      if (failureCode(error) !== "EEXIST") throw error;
      return false;
    }
  }

  /** Exchanges this directory for one in it, which is made if it is missing. */
  async #descend(name: string, owner: FileOwner | null): Promise<PinnedDirectory> {
    try {
      const isNew = await this.makeChild(name);
      const child = await this.child(name);
      if (isNew && owner !== null) await child.setOwner(owner);
      return child;
    } finally {
      await this[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/**
 * A directory held by name only, which works for one that may not be read. Its mode is set on what is held: a link that
 * replaces it meanwhile is not followed.
 */
export class HeldDirectory implements AsyncDisposable {
  readonly mode: number;
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string, mode: number) {
    this.#handle = handle;
    this.#path = path;
    this.mode = mode;
  }

  /** Holds a directory of another. A link, or anything else that is no directory, fails with `ENOTDIR`. */
  static async open(parent: PinnedDirectory, name: string): Promise<HeldDirectory> {
    const path = parent.at(name);
    const flags = hasDescriptorPaths ? O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW : OPEN_DIRECTORY;
    const handle = await open(path, flags);
    const { mode } = await handle.stat();
    return new HeldDirectory(handle, path, mode);
  }

  async setMode(mode: number): Promise<void> {
    // The kernel takes no mode through a handle that only names; its entry under /proc leads to the same directory.
    if (hasDescriptorPaths) await chmod(placeOf(this.#handle, this.#path), mode);
    else await this.#handle.chmod(mode);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/** Where an open file is for system calls, whatever is at its path by now. */
export function placeOf(handle: FileHandle, path: string): string {
  return hasDescriptorPaths ? `/proc/self/fd/${handle.fd}` : path;
}

/** Opens a directory as `PinnedDirectory.open` does, or resolves to null when there is none. */
export async function pinIfThere(path: string): Promise<PinnedDirectory | null> {
  try {
    return await PinnedDirectory.open(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
