import type { RedisHandle } from "./redis-handle.ts";
import { positionOf, readSegments, rowsOf, type Segment, type StoredSession, writeSegments } from "./stored-session.ts";
import { CUT, READ_ALL, RELEASE, RETAIN } from "./session-scripts.ts";

const CUT_AT_ONCE = 500;
/** A fork that does not exist so long after its reference was written will never be created. */
const CREATION_MS_MAX = 3_600_000;

/** A log, by the id and the uid of its session. */
type LogName = Pick<Segment, "id" | "uid">;

/**
 * Reference counting of logs: records which forks inherit from each log. A reference is written before its fork is created
 * and removed after its fork is purged, so a process that dies in between leaves one reference too many, never too few.
 */
export class ForkReferences {
  readonly #handle: RedisHandle;
  /** The key of a hash with the logs whose removal has begun, and the segments that each inherits. */
  readonly #removals: string;

  constructor(handle: RedisHandle) {
    this.#handle = handle;
    this.#removals = handle.names.index("removing");
  }

  /** Keeps the first `version` entries of a log for a fork. Returns false if they are deleted already. */
  async retain({ id, uid }: LogName, forkId: string, forkUid: string, version: number): Promise<boolean> {
    const args = [uid, forkUid, forkId, String(version), String(Date.now())];
    return (await this.#handle.run(RETAIN, this.#handle.names.all(id, uid), args))[0] === "ok";
  }

  /** Removes the reference of a fork. If it was the last reference to a purged session, deletes the rest of its log. */
  async release(log: LogName, forkUid: string): Promise<void> {
    const remains = this.#handle.names.remains(log.id, log.uid);
    const segments = await this.#handle.command<string | null>("HGET", remains, "sg");
    const release = (): Promise<unknown> =>
      this.#handle.run(RELEASE, this.#handle.names.all(log.id, log.uid), [forkUid]);
    if (segments === null) await release();
    else await this.#recorded(log, segments, release);
  }

  /**
   * Runs an operation that may remove a session's log, then deletes the entries that no fork needs, also those of the logs
   * that it inherited from. The removal is recorded first, so that `finish` can complete it if the process dies.
   */
  removing<T>({ stamp, head, segments }: StoredSession, act: () => Promise<T>): Promise<T> {
    return this.#recorded({ id: head.header.id, uid: stamp.uid }, writeSegments(segments.slice(0, -1)), act);
  }

  /** Completes removals that a dead process began. */
  async finish(): Promise<void> {
    const list = (await this.#handle.run(READ_ALL, [this.#removals], [])) as [field: string, segments: string][];
    for (const [field, segments] of list) {
      const [id = "", uid = ""] = field.split(" ");
      await this.#finishOne({ id, uid }, segments);
    }
  }

  async #recorded<T>(log: LogName, segments: string, act: () => Promise<T>): Promise<T> {
    await this.#handle.command("HSET", this.#removals, removalField(log), segments);
    const done = await act();
    await this.#finishOne(log, segments);
    return done;
  }

  async #finishOne({ id, uid }: LogName, segments: string): Promise<void> {
    const { names } = this.#handle;
    if (!(await this.#isCurrent(id, uid))) {
      const needed = await this.#handle.command<string | null>("HGET", names.remains(id, uid), "needed");
      const source = readSegments(segments).at(-1);
      if (needed !== null) await this.#cut({ id, uid }, Number(needed));
      else if (source !== undefined) await this.release(source, uid);
    }
    await this.#handle.command("HDEL", this.#removals, removalField({ id, uid }));
  }

  /** Deletes the entries of a purged log from a position on, in batches so that the server is never blocked for long. */
  async #cut({ id, uid }: LogName, from: number): Promise<void> {
    const { names } = this.#handle;
    const key = names.entries(id, uid);
    const range = ["XRANGE", key, positionOf(from), "+", "COUNT", String(CUT_AT_ONCE)];
    for (;;) {
      const rows = rowsOf(await this.#handle.command(...range));
      const args = rows.flatMap((row) => [positionOf(row.seq), row.id]);
      if (rows.length > 0) await this.#handle.run(CUT, names.all(id, uid), args);
      if (rows.length < CUT_AT_ONCE) return;
    }
  }

  /** Removes references whose fork was never created, or has expired. */
  async releaseDead({ id, uid }: LogName): Promise<void> {
    const list = await this.#handle.run(READ_ALL, [this.#handle.names.forks(id, uid)], []);
    for (const [forkUid, text] of list as [string, string][]) {
      const [forkId, , madeMs] = JSON.parse(text) as [string, string, string];
      if (Date.now() - Number(madeMs) < CREATION_MS_MAX || (await this.#exists(forkId, forkUid))) continue;
      await this.release({ id, uid }, forkUid);
    }
  }

  async #exists(id: string, uid: string): Promise<boolean> {
    const remains = this.#handle.names.remains(id, uid);
    return (await this.#isCurrent(id, uid)) || (await this.#handle.command("EXISTS", remains)) === 1;
  }

  /** Whether this is the current log of the session. */
  async #isCurrent(id: string, uid: string): Promise<boolean> {
    return (await this.#handle.command("HGET", this.#handle.names.session(id), "uid")) === uid;
  }
}

function removalField({ id, uid }: LogName): string {
  return `${id} ${uid}`;
}
