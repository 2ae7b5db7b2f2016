import { existsSync, constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { failureCode, isMissing } from "./file-failure.ts";

const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Opens a directory only as a reference, even without read permission. Linux only; Node has no constant for it. */
const O_PATH = 0o10000000;
/** Whether the system has paths for open files, so that such a path can replace the real one. */
export const hasDescriptorPaths: boolean = existsSync("/proc/self/fd");

/** The owner of a file. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * A directory that is kept open, so that operations in it stay in it even if someone moves it or replaces it by a link.
 *
 * On systems without `/proc/self/fd` its path is used instead, and a link that replaces the directory between the check and
 * the use is followed.
 */
export class PinnedDirectory implements AsyncDisposable {
  /** The path of the directory for system calls. */
  readonly realPath: string;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.realPath = descriptorPath(handle, path);
  }

  /** Opens a directory by a path with links resolved. @throws {SandboxError} `not_permitted` if it now contains a link. */
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

  /** Like `open`, but creates the directory and missing parents, with this owner. */
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

  /** The path of an item, for system calls that do not follow a link at its end. */
  at(name: string): string {
    return join(this.realPath, name);
  }

  /** Opens a subdirectory; refuses a link. */
  async child(name: string): Promise<PinnedDirectory> {
    const path = this.at(name);
    return new PinnedDirectory(await open(path, OPEN_DIRECTORY), path);
  }

  /** Sets the mode of the open directory, even if it was moved. */
  async setMode(mode: number): Promise<void> {
    await this.#handle.chmod(mode);
  }

  /** Changes the owner of the open directory, even if it was moved. */
  async setOwner({ uid, gid }: FileOwner): Promise<void> {
    await this.#handle.chown(uid, gid);
  }

  /** Creates a subdirectory; false if it existed. */
  async makeChild(name: string, mode?: number): Promise<boolean> {
    try {
      await mkdir(this.at(name), mode);
      return true;
    } catch (error) {
      if (failureCode(error) !== "EEXIST") throw error;
      return false;
    }
  }

  /** Opens a subdirectory, creating it if it is missing, and closes this one. */
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
 * A directory opened as a reference only (O_PATH), which works without read permission. Its mode is set through the reference:
 * a link that replaces the directory meanwhile is not followed.
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

  /** Opens a subdirectory. A link, or anything else that is not a directory, fails with `ENOTDIR`. */
  static async open(parent: PinnedDirectory, name: string): Promise<HeldDirectory> {
    const path = parent.at(name);
    const flags = hasDescriptorPaths ? O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW : OPEN_DIRECTORY;
    const handle = await open(path, flags);
    const { mode } = await handle.stat();
    return new HeldDirectory(handle, path, mode);
  }

  async setMode(mode: number): Promise<void> {
    // The kernel refuses fchmod on an O_PATH descriptor; its path under /proc refers to the same directory.
    if (hasDescriptorPaths) await chmod(descriptorPath(this.#handle, this.#path), mode);
    else await this.#handle.chmod(mode);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/** A path to an open file for system calls, valid even if its own path was replaced. */
export function descriptorPath(handle: FileHandle, path: string): string {
  return hasDescriptorPaths ? `/proc/self/fd/${handle.fd}` : path;
}

/** Like `PinnedDirectory.open`, but resolves to null if the directory does not exist. */
export async function pinIfExists(path: string): Promise<PinnedDirectory | null> {
  try {
    return await PinnedDirectory.open(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
