import type { RedisHandle } from "./redis-handle.ts";
import { positionOf, rowsOf } from "./stream-rows.ts";
import { readSegments, type Segment, writeSegments } from "./segments.ts";
import { CUT, READ_ALL, RELEASE, RETAIN } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const CUT_AT_ONCE = 500;
/** A fork that was not made so long after its reference never will be. */
const MAKING_MS_MAX = 3_600_000;

type Holder = Pick<Segment, "id" | "uid">;

/**
 * Knows which logs others build on. A reference is written before its fork is made and removed after its fork is purged,
 * so that whoever dies in between leaves a reference too many, never one too few.
 */
export class ForkReferences {
  readonly #handle: RedisHandle;
  /** The logs that are being taken away, and whose log each begins with: a hash. */
  readonly #notes: string;

  constructor(handle: RedisHandle) {
    this.#handle = handle;
    this.#notes = handle.names.index("removing");
  }

  /** Keeps the first `version` entries of a log for a fork; false when they are gone. */
  async retain({ id, uid }: Holder, forkId: string, forkUid: string, version: number): Promise<boolean> {
    const args = [uid, forkUid, forkId, String(version), String(Date.now())];
    return (await this.#handle.run(RETAIN, this.#handle.names.all(id, uid), args))[0] === "ok";
  }

  /** Lets go of what a fork took, and of all that nobody needs any more when it was the last of a purged session. */
  async release(holder: Holder, forkUid: string): Promise<void> {
    const remains = this.#handle.names.remains(holder.id, holder.uid);
    const segments = await this.#handle.command<string | null>("HGET", remains, "sg");
    const letGo = (): Promise<unknown> =>
      this.#handle.run(RELEASE, this.#handle.names.all(holder.id, holder.uid), [forkUid]);
    if (segments === null) await letGo();
    else await this.#noted(holder, segments, letGo);
  }

  /**
   * Runs what may take a session's log away, and then takes away what nobody needs any more of it and of those that it began
   * with. What was cut short by the end of a process is done by `finish`.
   */
  removing<T>({ stamp, head, segments }: StoredSession, act: () => Promise<T>): Promise<T> {
    return this.#noted({ id: head.header.id, uid: stamp.uid }, writeSegments(segments.slice(0, -1)), act);
  }

  /** Goes on with what was cut short. */
  async finish(): Promise<void> {
    const list = (await this.#handle.run(READ_ALL, [this.#notes], [])) as [note: string, segments: string][];
    for (const [note, segments] of list) {
      const [id = "", uid = ""] = note.split(" ");
      await this.#finishOne({ id, uid }, segments);
    }
  }

  async #noted<T>(log: Holder, segments: string, act: () => Promise<T>): Promise<T> {
    await this.#handle.command("HSET", this.#notes, noteOf(log), segments);
    const done = await act();
    await this.#finishOne(log, segments);
    return done;
  }

  async #finishOne({ id, uid }: Holder, segments: string): Promise<void> {
    const { names } = this.#handle;
    if (!(await this.#isLog(id, uid))) {
      const needed = await this.#handle.command<string | null>("HGET", names.remains(id, uid), "needed");
      const source = readSegments(segments).at(-1);
      if (needed !== null) await this.#cut({ id, uid }, Number(needed));
      else if (source !== undefined) await this.release(source, uid);
    }
    await this.#handle.command("HDEL", this.#notes, noteOf({ id, uid }));
  }

  /** Removes what a purged session's log has after a position, some at a time, so that the server is never held up. */
  async #cut({ id, uid }: Holder, from: number): Promise<void> {
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

  /** Lets go of references whose fork was never made, or ran out. */
  async releaseDead({ id, uid }: Holder): Promise<void> {
    const list = await this.#handle.run(READ_ALL, [this.#handle.names.forks(id, uid)], []);
    for (const [forkUid, text] of list as [string, string][]) {
      const [forkId, , madeMs] = JSON.parse(text) as [string, string, string];
      if (Date.now() - Number(madeMs) < MAKING_MS_MAX || (await this.#isThere(forkId, forkUid))) continue;
      await this.release({ id, uid }, forkUid);
    }
  }

  async #isThere(id: string, uid: string): Promise<boolean> {
    const remains = this.#handle.names.remains(id, uid);
    return (await this.#isLog(id, uid)) || (await this.#handle.command("EXISTS", remains)) === 1;
  }

  /** Whether a session has its log under this unique name. */
  async #isLog(id: string, uid: string): Promise<boolean> {
    return (await this.#handle.command("HGET", this.#handle.names.session(id), "uid")) === uid;
  }
}

function noteOf({ id, uid }: Holder): string {
  return `${id} ${uid}`;
}
