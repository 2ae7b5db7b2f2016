import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { LruCache } from "../internal/lru-cache.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionPage, SessionStore } from "../session/store.ts";

/** The storage limits of a user; null for no limit. */
export interface StorageLimits {
  readonly sessions: number | null;
  readonly bytes: number | null;
}

/** The options of a `UserStorage`. */
export interface UserStorageInit {
  readonly store: SessionStore;
  readonly limits: StorageLimits;
  /** The private directory of a user; null if there is none. */
  readonly directoryOf: (userId: string) => string | null;
}

const USERS_MAX = 10_000;
/** The maximum age of a count: while there is room, before something is refused, and before a run starts. */
const COUNT_MS = 60_000;
const BEFORE_REFUSAL_MS = 500;
const BEFORE_RUN_MS = 10_000;
const NEVER_MS: number = Number.NEGATIVE_INFINITY;
/** A directory is counted at most this often, and for at most a tenth of the time. */
const DIRECTORY_MS = 1000;
const DIRECTORY_SHARE = 10;
const FILES_MAX = 200_000;
/** A small page, because the heads of sessions with large variables may take long to read. */
const PAGE = 10;
/** The size of a session in addition to its entries: its header and its rows in listings. */
const SESSION_BYTES = 1024;
const CHARACTERS_AT_ONCE: number = 256 * 1024;
const PAUSE_MS_MAX = 500;

/** The state of a log at its last count. */
interface CountedLog {
  readonly version: number;
  readonly bytes: number;
}

/** A session of a user that starts with entries of another one. */
interface CountedFork {
  readonly id: string;
  readonly deleted: boolean;
  /** The number of entries that it shares with its source. */
  readonly shared: number;
}

interface Account {
  /** Null until they are counted. */
  sessions: number | null;
  logBytes: number;
  /** The bytes added here since the last count of the logs. */
  addedBytes: number;
  directoryBytes: number;
  logs: Map<string, CountedLog>;
  /** For purged sources, by id: the entries that a store keeps for their forks. */
  purged: Map<string, CountedLog>;
  sessionsCountedMs: number;
  bytesCountedMs: number;
  directoryDueMs: number;
  counting: Promise<void> | null;
}

/**
 * Counts the storage of each user: sessions of any status, deleted ones included, the bytes of their logs, and the
 * bytes of the user's private directory.
 *
 * - A count is cached for a minute, and later additions of this process are added to it. A refusal needs a count that is at most a second
 *   old.
 * - What other processes add is counted within a minute. After a start, a user is counted at the first request.
 * - A log is read once, and later only from where the last count ended. Counting stops when a limit is reached.
 * - Entries that a fork shares with its source count in the source, or in the fork if the source is purged or if the
 *   store copies forks.
 */
export class UserStorage {
  readonly #init: UserStorageInit;
  /** The end of the last count. */
  #lastCount: Promise<void> = Promise.resolve();
  readonly #accounts = new LruCache<string, Account>(USERS_MAX);

  constructor(init: UserStorageInit) {
    this.#init = init;
  }

  /** Reserves room for one more session. @throws {SessionError} `SESSIONS_QUOTA_EXCEEDED` if there is none. */
  async addSession(userId: string): Promise<void> {
    const { sessions: max } = this.#init.limits;
    if (max === null) return;
    const account = this.#account(userId);
    const dueMs = account.sessions === null || account.sessions >= max ? BEFORE_REFUSAL_MS : COUNT_MS;
    if (performance.now() - account.sessionsCountedMs > dueMs) await this.#countSessions(userId, account);
    // There is no `await` between this check and the reservation, so concurrent requests cannot all take the last
    // place.
    if ((account.sessions ?? 0) >= max) throw tooManySessions(userId, max);
    account.sessions = (account.sessions ?? 0) + 1;
  }

  /**
   * @throws {SessionError} `BYTES_QUOTA_EXCEEDED` if a user has no room for this number of bytes. Waits for a count
   * only in that case.
   */
  async checkBytes(userId: string, adding = 0): Promise<void> {
    const { bytes: max } = this.#init.limits;
    if (max === null) return;
    const account = this.#account(userId);
    if (bytesOf(account) + adding <= max) {
      const isDue = performance.now() - account.bytesCountedMs > COUNT_MS;
      // If the store fails now, the count is repeated with the next request.
      if (isDue) this.#countBytes(userId, account).catch(() => {});
      return;
    }
    if (performance.now() - account.bytesCountedMs > BEFORE_REFUSAL_MS) await this.#countBytes(userId, account);
    if (bytesOf(account) + adding > max) throw tooManyBytes(userId, max);
  }

  /** Checks the limit for a run, before it starts and between its rounds; the bytes that the run has written are counted first. */
  async checkRun(userId: string, sessionId: string): Promise<void> {
    if (this.#init.limits.bytes === null) return;
    const account = this.#account(userId);
    if (performance.now() - account.bytesCountedMs > BEFORE_RUN_MS) await this.#countBytes(userId, account);
    else {
      await this.#countSession(account, sessionId);
      await this.#countDirectory(userId, account);
    }
    await this.checkBytes(userId);
  }

  /** Adds the bytes that were just written for a user. */
  addBytes(userId: string, bytes: number): void {
    const account = this.#accounts.get(userId);
    if (account !== undefined) account.addedBytes += bytes;
  }

  /** Counts the additions to one log, if a request adds more than its body contains. */
  async addLog(userId: string, sessionId: string): Promise<void> {
    const account = this.#accounts.get(userId);
    if (this.#init.limits.bytes !== null && account !== undefined) await this.#countSession(account, sessionId);
  }

  #account(userId: string): Account {
    const known = this.#accounts.get(userId);
    if (known !== undefined) return known;
    const account: Account = {
      ...{ sessions: null, logBytes: 0, addedBytes: 0, directoryBytes: 0, counting: null },
      ...{ logs: new Map(), purged: new Map() },
      ...{ sessionsCountedMs: NEVER_MS, bytesCountedMs: NEVER_MS, directoryDueMs: NEVER_MS },
    };
    this.#accounts.set(userId, account);
    return account;
  }

  async #countSessions(userId: string, account: Account): Promise<void> {
    const countedMs = performance.now();
    const { store } = this.#init;
    account.sessions = (await store.count({ userId })) + (await store.count({ userId, deleted: true }));
    account.sessionsCountedMs = countedMs;
  }

  /** Counts logs and files; concurrent callers wait for the same count. Users are counted one after the other. */
  #countBytes(userId: string, account: Account): Promise<void> {
    if (account.counting === null) {
      account.counting = this.#lastCount
        .then(() => this.#countAll(userId, account))
        .finally(() => {
          account.counting = null;
        });
      this.#lastCount = account.counting.catch(() => {});
    }
    return account.counting;
  }

  async #countAll(userId: string, account: Account): Promise<void> {
    const [countedMs, added] = [performance.now(), account.addedBytes];
    const max = this.#init.limits.bytes ?? Number.POSITIVE_INFINITY;
    const logs = new Map<string, CountedLog>();
    const purged = new Map<string, CountedLog>();
    const forks = new Map<string, CountedFork>();
    let bytes = 0;
    for (const deleted of [false, true]) {
      for await (const head of this.#headsOf(userId, deleted)) {
        if (bytes > max) break;
        const log = await this.#countLog(head, deleted, account.logs.get(head.header.id));
        logs.set(head.header.id, log);
        bytes += log.bytes + SESSION_BYTES;
        this.#noteFork(forks, head, deleted);
      }
    }
    for (const [sourceId, fork] of forks) {
      if (bytes > max || logs.has(sourceId)) continue;
      const log = await this.#countShared(fork, account.purged.get(sourceId));
      purged.set(sourceId, log);
      bytes += log.bytes;
    }
    await this.#countDirectory(userId, account);
    account.logs = logs;
    account.purged = purged;
    account.logBytes = bytes;
    account.addedBytes -= added;
    account.bytesCountedMs = countedMs;
  }

  /** Keeps, among the forks of a source, the one that shares most entries with it. */
  #noteFork(forks: Map<string, CountedFork>, { header: { id, forkedFrom } }: SessionHead, deleted: boolean): void {
    if (forkedFrom === null || !this.#init.store.capabilities.forkByReference) return;
    const { sessionId, version: shared } = forkedFrom;
    if (shared > (forks.get(sessionId)?.shared ?? 0)) forks.set(sessionId, { id, deleted, shared });
  }

  /** Counts the entries that a fork shares with its source. */
  async #countShared({ id, deleted, shared }: CountedFork, known: CountedLog | undefined): Promise<CountedLog> {
    if (known?.version === shared) return known;
    return { version: shared, bytes: await this.#bytesBetween(id, { from: 0, to: shared, deleted }) };
  }

  /** Counts what was appended to one log since its last count. */
  async #countSession(account: Account, sessionId: string): Promise<void> {
    const head = await this.#init.store.head(sessionId);
    if (head === null) return;
    const { logs } = account;
    const log = await this.#countLog(head, false, logs.get(sessionId));
    // Another count may have replaced this one.
    if (account.logs !== logs) return;
    account.logBytes += log.bytes - (logs.get(sessionId)?.bytes ?? 0);
    logs.set(sessionId, log);
  }

  async *#headsOf(userId: string, deleted: boolean): AsyncGenerator<SessionHead> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { userId, deleted, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
      const page: SessionPage = await paced(() => this.#init.store.list(query));
      yield* page.items;
      cursor = page.next;
    }
  }

  /** The bytes of a log, without those that a fork shares with its source. */
  async #countLog(head: SessionHead, deleted: boolean, known: CountedLog | undefined): Promise<CountedLog> {
    const { version, header } = head;
    if (known?.version === version) return known;
    const isLonger = known !== undefined && known.version < version;
    const first = this.#init.store.capabilities.forkByReference ? (header.forkedFrom?.version ?? 0) : 0;
    const range = { from: isLonger ? known.version : first, to: version, deleted };
    return { version, bytes: (isLonger ? known.bytes : 0) + (await this.#bytesBetween(header.id, range)) };
  }

  async #bytesBetween(
    sessionId: string,
    { from, to, deleted }: { readonly from: number; readonly to: number; readonly deleted: boolean },
  ): Promise<number> {
    let bytes = 0;
    for (let after = from - 1; after < to - 1; ) {
      const options = { after, before: to, charactersMax: CHARACTERS_AT_ONCE, ...(deleted ? { deleted } : {}) };
      const texts = await paced(() => this.#init.store.readJson(sessionId, options));
      if (texts.length === 0) break;
      for (const text of texts) bytes += Buffer.byteLength(text);
      after += texts.length;
    }
    return bytes;
  }

  async #countDirectory(userId: string, account: Account): Promise<void> {
    const directory = this.#init.directoryOf(userId);
    const startedMs = performance.now();
    if (directory === null || startedMs < account.directoryDueMs) return;
    account.directoryDueMs = Number.POSITIVE_INFINITY;
    try {
      account.directoryBytes = await bytesIn(directory, this.#init.limits.bytes ?? Number.POSITIVE_INFINITY);
    } finally {
      const endedMs = performance.now();
      account.directoryDueMs = endedMs + Math.max(DIRECTORY_MS, (endedMs - startedMs) * DIRECTORY_SHARE);
    }
  }
}

/** Reads something, and then leaves twice that time to requests, because some stores read synchronously. */
async function paced<T>(read: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const result = await read();
  await pause(Math.min((performance.now() - startedMs) * 2, PAUSE_MS_MAX));
  return result;
}

function bytesOf({ logBytes, addedBytes, directoryBytes }: Account): number {
  return logBytes + addedBytes + directoryBytes;
}

/** The bytes of all files below a directory; stops when they exceed `max`. Links are not followed. */
async function bytesIn(root: string, max: number): Promise<number> {
  const directories = [root];
  let [bytes, files] = [0, 0];
  for (let path = directories.pop(); path !== undefined && bytes <= max; path = directories.pop()) {
    try {
      for await (const item of await opendir(path)) {
        if (++files > FILES_MAX) return Number.POSITIVE_INFINITY;
        if (item.isDirectory()) directories.push(join(path, item.name));
        // A file may have been deleted by now.
        const { size } = await lstat(join(path, item.name)).catch(() => ({ size: 0 }));
        bytes += size;
        if (bytes > max) break;
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "EACCES" && code !== "ENOTDIR") throw error;
    }
  }
  return bytes;
}

function tooManySessions(userId: string, max: number): SessionError {
  return new SessionError(
    "SESSIONS_QUOTA_EXCEEDED",
    `User ${show(userId)} keeps ${max} sessions already, closed and deleted ones included, and may keep no more; ` +
      "delete some, and have the trash purged.",
  );
}

function tooManyBytes(userId: string, max: number): SessionError {
  return new SessionError(
    "BYTES_QUOTA_EXCEEDED",
    `User ${show(userId)} may keep ${max} bytes in sessions and workspace files, and has no room for more; ` +
      "delete sessions and have the trash purged, or remove files.",
  );
}
