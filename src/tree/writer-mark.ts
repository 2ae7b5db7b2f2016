import { readdir, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FileLock, type LockOwner } from "../internal/file-lock.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";

const REFRESH_MS = 20_000;

/** The name of the mark that one writer at a time has; those of others are unique. */
const RUN_MARK = "run";

/** Shows the others that someone writes to a session's file, for as long as the process lives. */
export class WriterMark {
  readonly #path: string;
  readonly #directory: string;
  readonly #lock: FileLock;
  #timer: NodeJS.Timeout | null = null;

  /** With `alone`, there is one mark for the file: of several who put it up at once, one has it. */
  constructor(path: string, { alone = false }: { readonly alone?: boolean } = {}) {
    this.#path = path;
    this.#directory = join(dirname(path), ".index", `${basename(path)}.writers`);
    this.#lock = new FileLock(join(this.#directory, alone ? RUN_MARK : uuidv7()));
  }

  /**
   * Puts the mark up. Resolves to null, or, where the mark is one that only one can have, to whoever has it.
   *
   * @throws {SessionError} `STORE_FAILED` where no file can be made.
   */
  async put(): Promise<string | null> {
    let owner: LockOwner | null;
    try {
      owner = await this.#lock.acquire(0);
    } catch (cause) {
      const { code = String(cause) } = cause as NodeJS.ErrnoException;
      const reason = `Nothing can be written beside ${show(this.#path)} (${code})`;
      throw new SessionError("STORE_FAILED", `${reason}; check the directory, or choose another path.`, { cause });
    }
    if (owner !== null) return nameOf(owner);
    this.#timer = setInterval(() => void this.#lock.refresh().catch(() => {}), REFRESH_MS);
    this.#timer.unref();
    return null;
  }

  /** Another live writer of the same file, or null. Marks of processes that have ended are taken down. */
  async findOther(): Promise<string | null> {
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const path = join(this.#directory, name);
      if (path === this.#lock.path || name.includes(".")) continue;
      const other = new FileLock(path);
      // Taking that one, for as long as a look lasts, would keep a run from it.
      const owner = name === RUN_MARK ? await other.findHolder() : await other.acquire(0);
      if (owner !== null) return nameOf(owner);
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

function nameOf({ pid, host }: LockOwner): string {
  return pid === process.pid ? "another writer of this process" : `process ${pid} on ${host}`;
}
