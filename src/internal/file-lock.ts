import { existsSync, rmSync } from "node:fs";
import { link, readdir, readFile, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { makePrivateDirectory, openPrivateFile, writePrivateFile } from "./private-file.ts";
import { isNumberFree, thisProcess } from "./process-identity.ts";
import { uuidv7 } from "./uuid.ts";

/** Who holds a lock. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  /** Names one taking of the lock. */
  readonly token: string;
  /** When the process began, as far as the system tells: a number that was used again for another process differs. */
  readonly startedAt: string | null;
}

/** The longest that a holder on another machine may be silent before its lock is taken over. */
export const FOREIGN_SILENCE_MS_MAX = 60_000;

const POLL_MS_MIN = 1;
const POLL_MS_MAX = 8;
const STALE_CHECK_MS = 40;
const TAKEOVERS_MAX = 16;
const LEFTOVER_MS_MIN = 60_000;
/** A lock without a readable owner is one whose making was cut off, on a system where it cannot be made in one step. */
const UNREADABLE_MS_MAX = 2_000;

const self = { pid: thisProcess.pid, host: hostname(), startedAt: thisProcess.startedAt };

/**
 * A lock among processes: a file that names its holder.
 *
 * - It appears with its content in one step, so nobody sees it half made.
 * - The lock of a process that has died is taken over at once, by exactly one of those who wait; on another
 *   machine, when it has been silent for a minute.
 * - Who waits puts a wish beside it, so that a busy holder can give way.
 */
export class FileLock {
  readonly path: string;
  #token: string | null = null;
  /** When others last saw that the holder lives. */
  #seenAtMs = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether this object holds the lock, as far as it knows. */
  get held(): boolean {
    return this.#token !== null;
  }

  /** Takes the lock. Resolves to null, or after `timeoutMs` to its holder. */
  async acquire(timeoutMs: number): Promise<LockOwner | null> {
    const owner: LockOwner = { ...self, token: uuidv7() };
    const prepared = await prepare(this.path, owner);
    const deadline = performance.now() + timeoutMs;
    let waited = false;
    let checkedAt = Number.NEGATIVE_INFINITY;
    try {
      for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(POLL_MS_MAX, pollMs * 2)) {
        if (await putLock(prepared, this.path, owner)) break;
        const now = performance.now();
        if (now - checkedAt > STALE_CHECK_MS) {
          checkedAt = now;
          if (await this.#takeOver(owner)) continue;
        }
        if (now >= deadline) return (await this.#holder())?.owner ?? { ...owner, pid: 0 };
        waited = true;
        await wish(this.path);
        await sleep(pollMs * (0.5 + Math.random()));
      }
    } finally {
      await remove(prepared);
      if (waited) await remove(`${this.path}.want`);
    }
    this.#token = owner.token;
    this.#seenAtMs = performance.now();
    return null;
  }

  /** Who holds the lock, without touching it; null when nobody does who lives. */
  async findHolder(): Promise<LockOwner | null> {
    const holder = await this.#holder();
    if (holder === null || (await isGone(holder, this.path))) return null;
    return holder.owner ?? { ...self, token: "", pid: 0 };
  }

  /** Lets go of the lock; does nothing when it is not held any more. */
  async release(): Promise<void> {
    const token = this.#token;
    this.#token = null;
    if (token === null) return;
    // Only after a long silence can someone else have taken it over.
    const mine = this.silentMs < FOREIGN_SILENCE_MS_MAX / 2 || (await this.#holder())?.owner?.token === token;
    if (mine) await remove(this.path);
  }

  /** How long ago others last saw that the holder lives; call `refresh` well before a minute has passed. */
  get silentMs(): number {
    return performance.now() - this.#seenAtMs;
  }

  /** Whether someone waits; the wish is taken down, and put up again by who still waits. */
  isWanted(): boolean {
    const wish = `${this.path}.want`;
    if (!existsSync(wish)) return false;
    rmSync(wish, { force: true });
    return true;
  }

  /** Shows that the holder lives. Resolves to false when the lock has been taken over. */
  async refresh(): Promise<boolean> {
    const current = await this.#holder();
    if (this.#token === null || current?.owner?.token !== this.#token) {
      this.#token = null;
      return false;
    }
    const now = new Date();
    await utimes(this.path, now, now);
    this.#seenAtMs = performance.now();
    return true;
  }

  async #holder(): Promise<Holder | null> {
    return readHolder(this.path);
  }

  /**
   * Removes the lock of a holder that is gone. The right to do so is itself made exclusively, and passes on when
   * whoever has it dies too; the lock is read again under that right, so that a later holder's lock is never
   * removed.
   */
  async #takeOver(owner: LockOwner): Promise<boolean> {
    const holder = await this.#holder();
    if (holder === null) return true;
    if (!(await isGone(holder, this.path))) return false;
    const rights: string[] = [];
    let dead = tokenOf(holder);
    for (let depth = 0; depth < TAKEOVERS_MAX; depth++) {
      const right = `${this.path}.${dead}.dead`;
      rights.push(right);
      const prepared = await prepare(right, owner);
      const mine = await putLock(prepared, right, owner).finally(() => remove(prepared));
      if (mine) {
        const current = await this.#holder();
        if (current !== null && tokenOf(current) === tokenOf(holder)) await remove(this.path);
        for (const leftover of rights) await remove(leftover);
        await removeLeftovers(this.path);
        return true;
      }
      const other = await readHolder(right);
      if (other === null) return true;
      if (!(await isGone(other, right))) return false;
      dead = tokenOf(other);
    }
    return false;
  }
}

interface Holder {
  /** Null when the file does not name one. */
  readonly owner: LockOwner | null;
  readonly modifiedMs: number;
}

/** Whether the process that made the file has ended. */
async function isGone({ owner, modifiedMs }: Holder, path: string): Promise<boolean> {
  if (owner === null) return (await clockOf(path)) - modifiedMs > UNREADABLE_MS_MAX;
  if (owner.host !== self.host) return (await clockOf(path)) - modifiedMs > FOREIGN_SILENCE_MS_MAX;
  return isNumberFree(owner.pid, owner.startedAt);
}

/** The time by the clock that stamps the files there, which on a network is not this machine's. */
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

/** A file with the owner's name, ready to be made the lock. */
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

/** Makes the prepared file the lock; false when there is one. */
async function putLock(prepared: string, path: string, owner: LockOwner): Promise<boolean> {
  try {
    await link(prepared, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code === "ENOENT") {
      // Someone removed the whole directory meanwhile.
      await makePrivateDirectory(dirname(path));
    }
    return placeInTwoSteps(path, owner);
  }
}

async function placeInTwoSteps(path: string, owner: LockOwner): Promise<boolean> {
  try {
    await writePrivateFile(path, JSON.stringify(owner), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function wish(path: string): Promise<void> {
  const handle = await openPrivateFile(`${path}.want`, "a").catch(() => null);
  await handle?.close();
}

/** Removes what killed processes left beside a lock. */
async function removeLeftovers(path: string): Promise<void> {
  const directory = dirname(path);
  const prefix = `${basename(path)}.`;
  const names = await readdir(directory).catch(() => [] as string[]);
  for (const name of names) {
    if (!name.startsWith(prefix) || !/\.(?:dead|tmp)$/.test(name)) continue;
    const leftover = join(directory, name);
    const holder = await readHolder(leftover).catch(() => null);
    if (holder === null) continue;
    // A right may still be part of a taking over that is under way; what was only prepared is of no use to anyone.
    const unused = name.endsWith(".tmp") && holder.owner !== null;
    if (!unused && Date.now() - holder.modifiedMs < LEFTOVER_MS_MIN) continue;
    if (await isGone(holder, leftover)) await remove(leftover);
  }
}

/** Whether there was such a file. */
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
