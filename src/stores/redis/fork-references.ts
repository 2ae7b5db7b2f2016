import type { RedisHandle } from "./redis-handle.ts";
import { placeOf, rowsOf } from "./redis-port.ts";
import { readSegments, type Segment } from "./segments.ts";
import { CUT, READ_ALL, RELEASE, RETAIN } from "./session-scripts.ts";

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

  constructor(handle: RedisHandle) {
    this.#handle = handle;
  }

  /** Keeps the first `version` entries of a log for a fork; false when they are gone. */
  async retain({ id, uid }: Holder, forkId: string, forkUid: string, version: number): Promise<boolean> {
    const args = [uid, forkUid, forkId, String(version), String(Date.now())];
    return (await this.#handle.run(RETAIN, this.#handle.names.all(id, uid), args))[0] === "ok";
  }

  /** Lets go of what a fork took, and of all that nobody needs any more when it was the last of a purged session. */
  async release(holder: Holder, forkUid: string): Promise<void> {
    let [{ id, uid }, fork]: [Holder, string] = [holder, forkUid];
    // Every step leads to an older session, so that this ends.
    for (;;) {
      const [kind, rest] = (await this.#handle.run(RELEASE, this.#handle.names.all(id, uid), [fork])) as [
        string,
        string | undefined,
      ];
      if (kind === "cut") await this.cut({ id, uid }, Number(rest));
      const next = kind === "removed" ? readSegments(rest as string).at(-1) : undefined;
      if (next === undefined) return;
      fork = uid;
      ({ id, uid } = next);
    }
  }

  /** Removes what a purged session's log has after a position, some at a time, so that the server is never held up. */
  async cut({ id, uid }: Holder, from: number): Promise<void> {
    const { names } = this.#handle;
    const key = names.entries(id, uid);
    const range = ["XRANGE", key, placeOf(from), "+", "COUNT", String(CUT_AT_ONCE)];
    for (;;) {
      const rows = rowsOf(await this.#handle.command(key, range));
      const args = rows.flatMap((row) => [placeOf(row.seq), row.id]);
      if (rows.length > 0) await this.#handle.run(CUT, names.all(id, uid), args);
      if (rows.length < CUT_AT_ONCE) return;
    }
  }

  /** Lets go of references whose fork was never made, or ran out. */
  async releaseDead({ id, uid }: Holder): Promise<void> {
    const list = (await this.#handle.run(READ_ALL, [this.#handle.names.forks(id, uid)], [])) as string[];
    for (let i = 0; i < list.length; i += 2) {
      const forkUid = list[i] as string;
      const [forkId, , madeMs] = JSON.parse(list[i + 1] as string) as [string, string, string];
      if (Date.now() - Number(madeMs) < MAKING_MS_MAX || (await this.#isThere(forkId, forkUid))) continue;
      await this.release({ id, uid }, forkUid);
    }
  }

  async #isThere(id: string, uid: string): Promise<boolean> {
    const [session, remains] = [this.#handle.names.session(id), this.#handle.names.remains(id, uid)];
    if ((await this.#handle.command(session, ["HGET", session, "uid"])) === uid) return true;
    return (await this.#handle.command(remains, ["EXISTS", remains])) === 1;
  }
}
