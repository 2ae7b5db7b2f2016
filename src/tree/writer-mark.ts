import { readdir, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FileLock, type LockOwner } from "../internal/file-lock.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";

const HEARTBEAT_MS = 20_000;

/** The file name of the exclusive mark of a run. Marks of other writers have unique names. */
const RUN_MARK = "run";

/** A lock file that shows other processes that this one writes to a session's file. It is valid while the process lives. */
export class WriterMark {
  readonly #path: string;
  readonly #directory: string;
  readonly #lock: FileLock;
  #timer: NodeJS.Timeout | null = null;

  /** With `exclusive`, there is one mark for the file, which only one of several writers gets. */
  constructor(path: string, { exclusive = false }: { readonly exclusive?: boolean } = {}) {
    this.#path = path;
    this.#directory = join(dirname(path), ".index", `${basename(path)}.writers`);
    this.#lock = new FileLock(join(this.#directory, exclusive ? RUN_MARK : uuidv7()));
  }

  /**
   * Creates the mark. Resolves to null, or to the holder of an exclusive mark that is taken.
   *
   * @throws {SessionError} `STORE_FAILED` if the file cannot be created.
   */
  async create(): Promise<string | null> {
    let owner: LockOwner | null;
    try {
      owner = await this.#lock.acquire(0);
    } catch (cause) {
      const { code = String(cause) } = cause as NodeJS.ErrnoException;
      const reason = `Nothing can be written beside ${show(this.#path)} (${code})`;
      throw new SessionError("STORE_FAILED", `${reason}; check the directory, or choose another path.`, { cause });
    }
    if (owner !== null) return nameOf(owner);
    this.#timer = setInterval(() => void this.#lock.heartbeat().catch(() => {}), HEARTBEAT_MS);
    this.#timer.unref();
    return null;
  }

  /** Another live writer of the same file, or null. Removes the marks of processes that have ended. */
  async findOther(): Promise<string | null> {
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const path = join(this.#directory, name);
      if (path === this.#lock.path || name.includes(".")) continue;
      const other = new FileLock(path);
      // Only read the exclusive mark: acquiring it here, even for a moment, could make a run fail to get it.
      const owner = name === RUN_MARK ? await other.findHolder() : await other.acquire(0);
      if (owner !== null) return nameOf(owner);
      await other.release();
    }
    return null;
  }

  /** Removes the mark. */
  async remove(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#lock.release();
    // Remove the directory with the last mark; this fails while there are others.
    await rmdir(this.#directory).catch(() => {});
  }
}

function nameOf({ pid, host }: LockOwner): string {
  return pid === process.pid ? "another writer of this process" : `process ${pid} on ${host}`;
}
