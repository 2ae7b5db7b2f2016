import { readdir, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FileLock } from "../internal/file-lock.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";

const REFRESH_MS = 20_000;

/** Shows the others that someone writes to a session's file, for as long as the process lives. */
export class WriterMark {
  readonly #path: string;
  readonly #directory: string;
  readonly #lock: FileLock;
  #timer: NodeJS.Timeout | null = null;

  constructor(path: string) {
    this.#path = path;
    this.#directory = join(dirname(path), ".index", `${basename(path)}.writers`);
    this.#lock = new FileLock(join(this.#directory, uuidv7()));
  }

  /**
   * Puts the mark up.
   *
   * @throws {SessionError} `STORE_FAILED` where no file can be made.
   */
  async place(): Promise<void> {
    try {
      await this.#lock.acquire(0);
    } catch (cause) {
      const { code = String(cause) } = cause as NodeJS.ErrnoException;
      const reason = `Nothing can be written beside ${show(this.#path)} (${code})`;
      throw new SessionError("STORE_FAILED", `${reason}; check the directory, or choose another path.`, { cause });
    }
    this.#timer = setInterval(() => void this.#lock.refresh().catch(() => {}), REFRESH_MS);
    this.#timer.unref();
  }

  /** Another live writer of the same file, or null. Marks of processes that have ended are taken down. */
  async findOther(): Promise<string | null> {
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const path = join(this.#directory, name);
      if (path === this.#lock.path || name.includes(".")) continue;
      const other = new FileLock(path);
      const owner = await other.acquire(0);
      if (owner !== null)
        return owner.pid === process.pid ? "another writer of this process" : `process ${owner.pid} on ${owner.host}`;
      await other.release();
    }
    return null;
  }

  /** Takes the mark down. */
  async remove(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#lock.release();
    // The last one out takes the directory along; others' marks keep it.
    await rmdir(this.#directory).catch(() => {});
  }
}
