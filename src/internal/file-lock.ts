import { existsSync, rmSync } from "node:fs";
import { link, readdir, readFile, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { makePrivateDirectory, openPrivateFile, writePrivateFile } from "./private-file.ts";
import { isPidFree, thisProcess } from "./process-identity.ts";
import { uuidv7 } from "./uuid.ts";

/** The process that holds a lock. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  /** Unique for each acquisition of the lock. */
  readonly token: string;
  /** When the process started, or null if unknown. It differs if the pid was reused for another process. */
  readonly startedAt: string | null;
}

/** After this long without a heartbeat the lock of a holder on another machine is stale and is taken over. */
export const REMOTE_STALE_MS = 60_000;

const POLL_MS_MIN = 1;
const POLL_MS_MAX = 8;
const STALE_CHECK_MS = 40;
const TAKEOVERS_MAX = 16;
const LEFTOVER_MS_MIN = 60_000;
/** A lock file without a readable owner is stale after this time: its writer was killed where files cannot be linked. */
const UNREADABLE_MS_MAX = 2_000;

const self = { pid: thisProcess.pid, host: hostname(), startedAt: thisProcess.startedAt };

/**
 * A mutex among processes: a lock file that names its holder.
 *
 * - The file is created atomically with its content.
 * - The lock of a process that has died is taken over immediately, by exactly one waiter. If the process was on another
 *   machine, the lock is taken over after a minute without a heartbeat.
 * - Waiters create a request file beside the lock, so that a busy holder can release it for them.
 */
export class FileLock {
  readonly path: string;
  #token: string | null = null;
  #heartbeatAtMs = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether this object has acquired the lock and has not noticed a takeover. */
  get held(): boolean {
    return this.#token !== null;
  }

  /** Acquires the lock. Resolves to null, or after `timeoutMs` to the current holder. */
  async acquire(timeoutMs: number): Promise<LockOwner | null> {
    const owner: LockOwner = { ...self, token: uuidv7() };
    const prepared = await prepare(this.path, owner);
    const deadline = performance.now() + timeoutMs;
    let waited = false;
    let checkedAt = Number.NEGATIVE_INFINITY;
    try {
      for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(POLL_MS_MAX, pollMs * 2)) {
        if (await createLock(prepared, this.path, owner)) break;
        const now = performance.now();
        if (now - checkedAt > STALE_CHECK_MS) {
          checkedAt = now;
          if (await this.#takeOver(owner)) continue;
        }
        if (now >= deadline) return (await this.#holder())?.owner ?? { ...owner, pid: 0 };
        waited = true;
        await requestLock(this.path);
        await sleep(pollMs * (0.5 + Math.random()));
      }
    } finally {
      await remove(prepared);
      if (waited) await remove(`${this.path}.want`);
    }
    this.#token = owner.token;
    this.#heartbeatAtMs = performance.now();
    return null;
  }

  /** The live holder of the lock, or null. Does not change the lock. */
  async findHolder(): Promise<LockOwner | null> {
    const holder = await this.#holder();
    if (holder === null || (await isStale(holder, this.path))) return null;
    return holder.owner ?? { ...self, token: "", pid: 0 };
  }

  /** Releases the lock. Does nothing if it is not held any more. */
  async release(): Promise<void> {
    const token = this.#token;
    this.#token = null;
    if (token === null) return;
    // Another process can only have taken it over if the last heartbeat is old.
    const stillHeld = this.heartbeatAgeMs < REMOTE_STALE_MS / 2 || (await this.#holder())?.owner?.token === token;
    if (stillHeld) await remove(this.path);
  }

  /** The time since the last heartbeat. Send one with `heartbeat` well before a minute has passed. */
  get heartbeatAgeMs(): number {
    return performance.now() - this.#heartbeatAtMs;
  }

  /** True if another process is waiting. Deletes the request file; live waiters recreate it. */
  hasWaiters(): boolean {
    const request = `${this.path}.want`;
    if (!existsSync(request)) return false;
    rmSync(request, { force: true });
    return true;
  }

  /** Updates the time of the lock file, to show that the holder is alive. Resolves to false if the lock was taken over. */
  async heartbeat(): Promise<boolean> {
    const current = await this.#holder();
    if (this.#token === null || current?.owner?.token !== this.#token) {
      this.#token = null;
      return false;
    }
    const now = new Date();
    await utimes(this.path, now, now);
    this.#heartbeatAtMs = performance.now();
    return true;
  }

  async #holder(): Promise<Holder | null> {
    return readHolder(this.path);
  }

  /**
   * Removes a stale lock. The process that removes it must first create a takeover lock, which is taken over in the same way
   * if that process dies. The lock is read again under the takeover lock, so that the lock of a later holder is never
   * removed.
   */
  async #takeOver(owner: LockOwner): Promise<boolean> {
    const holder = await this.#holder();
    if (holder === null) return true;
    if (!(await isStale(holder, this.path))) return false;
    const takeoverLocks: string[] = [];
    let dead = tokenOf(holder);
    for (let depth = 0; depth < TAKEOVERS_MAX; depth++) {
      const takeoverLock = `${this.path}.${dead}.dead`;
      takeoverLocks.push(takeoverLock);
      const prepared = await prepare(takeoverLock, owner);
      const acquired = await createLock(prepared, takeoverLock, owner).finally(() => remove(prepared));
      if (acquired) {
        const current = await this.#holder();
        if (current !== null && tokenOf(current) === tokenOf(holder)) await remove(this.path);
        for (const leftover of takeoverLocks) await remove(leftover);
        await removeLeftovers(this.path);
        return true;
      }
      const other = await readHolder(takeoverLock);
      if (other === null) return true;
      if (!(await isStale(other, takeoverLock))) return false;
      dead = tokenOf(other);
    }
    return false;
  }
}

interface Holder {
  /** Null if the file does not name one. */
  readonly owner: LockOwner | null;
  readonly modifiedMs: number;
}

/** Whether a lock file is stale: its process has ended, or is on another machine and has sent no heartbeat for a minute. */
async function isStale({ owner, modifiedMs }: Holder, path: string): Promise<boolean> {
  if (owner === null) return (await clockOf(path)) - modifiedMs > UNREADABLE_MS_MAX;
  if (owner.host !== self.host) return (await clockOf(path)) - modifiedMs > REMOTE_STALE_MS;
  return isPidFree(owner.pid, owner.startedAt);
}

/** The current time by the clock of the file system: on a network drive that is not this machine's clock. */
async function clockOf(path: string): Promise<number> {
  const probe = `${path}.${uuidv7()}.tmp`;
  try {
    await writePrivateFile(probe, "");
    return (await stat(probe)).mtimeMs;
  } catch {
    return Date.now();
  } finally {
    await remove(probe);
  }
}

async function readHolder(path: string): Promise<Holder | null> {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, "utf8"), stat(path)]);
    return { owner: parseOwner(text), modifiedMs: mtimeMs };
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function parseOwner(text: string): LockOwner | null {
  try {
    const { pid, host, token, startedAt } = JSON.parse(text) as Record<string, unknown>;
    if (!Number.isSafeInteger(pid) || (pid as number) <= 0 || typeof host !== "string") return null;
    if (typeof token !== "string" || !/^[\w-]{1,64}$/.test(token)) return null;
    return { pid: pid as number, host, token, startedAt: typeof startedAt === "string" ? startedAt : null };
  } catch {
    return null;
  }
}

function tokenOf({ owner, modifiedMs }: Holder): string {
  return owner?.token ?? `unnamed-${Math.round(modifiedMs)}`;
}

/** Writes a temporary file that names the owner, to be linked as the lock. */
async function prepare(path: string, owner: LockOwner): Promise<string> {
  const prepared = `${path}.${uuidv7()}.tmp`;
  const text = JSON.stringify(owner);
  try {
    await writePrivateFile(prepared, text, { flag: "wx" });
  } catch (error) {
    if (!isMissing(error)) throw error;
    await makePrivateDirectory(dirname(path));
    await writePrivateFile(prepared, text, { flag: "wx" });
  }
  return prepared;
}

/** Links the prepared file as the lock; false if the lock exists. */
async function createLock(prepared: string, path: string, owner: LockOwner): Promise<boolean> {
  try {
    await link(prepared, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code === "ENOENT") {
      // Another process has removed the directory meanwhile.
      await makePrivateDirectory(dirname(path));
    }
    return writeLock(path, owner);
  }
}

/** Creates and writes the lock in two steps, for file systems without hard links. */
async function writeLock(path: string, owner: LockOwner): Promise<boolean> {
  try {
    await writePrivateFile(path, JSON.stringify(owner), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Creates the request file of a waiter. */
async function requestLock(path: string): Promise<void> {
  const handle = await openPrivateFile(`${path}.want`, "a").catch(() => null);
  await handle?.close();
}

/** Removes the files that killed processes have left beside a lock. */
async function removeLeftovers(path: string): Promise<void> {
  const directory = dirname(path);
  const prefix = `${basename(path)}.`;
  const names = await readdir(directory).catch(() => [] as string[]);
  for (const name of names) {
    if (!name.startsWith(prefix) || !/\.(?:dead|tmp)$/.test(name)) continue;
    const leftover = join(directory, name);
    const holder = await readHolder(leftover).catch(() => null);
    if (holder === null) continue;
    // A takeover lock may still be in use by a running takeover. A prepared file of a dead process never is.
    const unused = name.endsWith(".tmp") && holder.owner !== null;
    if (!unused && Date.now() - holder.modifiedMs < LEFTOVER_MS_MIN) continue;
    if (await isStale(holder, leftover)) await remove(leftover);
  }
}

/** Removes a file; false if it does not exist. */
async function remove(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
