import { MOVE_CHECKPOINTS, READ_UNSETTLED, REPLACE_RECORD, UNMARK } from "./index-scripts.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import { idOfMember, type IndexMember, type IndexRecord, membersOf, recordOf, timedMember } from "./index-record.ts";
import { isWriteRefused } from "./redis-failure.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { END_GENERATION, FENCE } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;
const AT_ONCE = 256;
const MEMBERS_AT_ONCE_MIN = 32;
/** The largest page of a sorted set. */
export const MEMBERS_AT_ONCE_MAX = 1001;
/** A session with a write in the last second keeps its mark, as the next write would have to mark it again. */
const QUIET_MS = 1000;
const MISSING_MAX = 1000;

/** A marked session, with its record. */
type Mark = readonly [id: string, gen: string, record: string | null];

/**
 * The index of sessions. In a cluster, the index and a session are in different slots, so no script can write both. Instead:
 *
 * - Before a write, the session is marked as possibly outdated in the index (the set `unsettled`). The script that writes
 *   checks that the session is still in the generation of the mark.
 * - A query of the index first updates the records of all marked sessions, each from the session itself.
 * - To remove a mark, first the generation of the session is ended (incremented), then the mark is removed. A writer that
 *   relies on a mark of the old generation is refused and marks the session again.
 *
 * So a query sees every write that was acknowledged before it, even if processes die in between, and an append to a marked
 * session has no extra cost. A record is replaced by compare-and-set, and always read before the session it is computed from.
 */
export class SessionIndex {
  readonly #handle: RedisHandle;
  readonly #port: RedisPort;
  /** Marks without a session, each with the time at which that was first seen. */
  readonly #missing = new Map<string, number>();

  constructor(port: RedisPort) {
    this.#handle = port.handle;
    this.#port = port;
  }

  /** Marks a session. Required before any write to that generation of the session. */
  async mark(id: string, gen: number): Promise<void> {
    await this.#handle.command("ZADD", this.#handle.names.index("unsettled"), "GT", String(gen), id);
  }

  /** Updates the index with every write so far. Throws if the server refuses writes. */
  async refresh(): Promise<void> {
    for (const refusal of (await this.refreshIfWritable()).values()) throw refusal;
  }

  /**
   * Like `refresh`, but tolerates a server that refuses writes, so that listing works with a full disk. Returns the sessions whose
   * records could not be updated, each with the error.
   */
  async refreshIfWritable(): Promise<ReadonlyMap<string, unknown>> {
    const refusals = new Map<string, unknown>();
    const attempt = async (id: string, task: Promise<void>): Promise<void> => {
      try {
        await task;
      } catch (error) {
        if (!isWriteRefused(error)) throw error;
        refusals.set(id, error);
      }
    };
    const keys = [this.#handle.names.index("unsettled"), this.#handle.names.index("records")];
    const marks = (await this.#handle.run(READ_UNSETTLED, keys, [])) as Mark[];
    for (let first = 0; first < marks.length; first += AT_ONCE) {
      const some = marks.slice(first, first + AT_ONCE);
      await Promise.all(some.map((mark) => attempt(mark[0], this.#refreshMarked(mark))));
    }
    const { clock, ttlSeconds } = this.#port;
    if (ttlSeconds === undefined) return refusals;
    // Redis deletes expired sessions without marking them.
    const end = new Date(clock().getTime() - ttlSeconds * 1000).toISOString();
    for await (const ids of this.before("updated", end, AT_ONCE))
      await Promise.all(ids.map((id) => attempt(id, this.refreshOne(id))));
    return refusals;
  }

  /** Updates the record of one session. */
  async refreshOne(id: string): Promise<void> {
    await this.#refreshRecord(id, await this.#recordOf(id));
  }

  /** The sessions in a sorted set with a time before `time`, oldest first, in pages. */
  before(part: string, time: string, wanted: number = MEMBERS_AT_ONCE_MAX): AsyncGenerator<readonly string[]> {
    return this.#pages(this.#handle.names.index(part), "-", [`(${time}`, "BYLEX"], wanted);
  }

  /** The sessions in a sorted set after a position, or all of them, newest first, in pages. */
  after(key: string, position: ListPosition | null, wanted: number): AsyncGenerator<readonly string[]> {
    const from = position === null ? "+" : `(${timedMember(position.modifiedAt, position.id)}`;
    return this.#pages(key, from, ["-", "BYLEX", "REV"], wanted);
  }

  async *#pages(
    key: string,
    from: string,
    range: readonly string[],
    wanted: number,
  ): AsyncGenerator<readonly string[]> {
    const size = Math.min(MEMBERS_AT_ONCE_MAX, Math.max(MEMBERS_AT_ONCE_MIN, wanted));
    let start = from;
    for (;;) {
      const members = await this.#handle.command<string[]>("ZRANGE", key, start, ...range, "LIMIT", "0", String(size));
      yield members.map(idOfMember);
      if (members.length < size) return;
      start = `(${members.at(-1)}`;
    }
  }

  /** Prevents the creation of a missing session by a process that marked it in this generation. Returns false if it exists. */
  async fence(id: string, gen: string): Promise<boolean> {
    const [fenced] = await this.#handle.run(FENCE, this.#handle.names.all(id), [gen]);
    return fenced === 1;
  }

  async #refreshMarked([id, gen, record]: Mark): Promise<void> {
    const { session, replaced } = await this.#refreshRecord(id, record ?? "");
    if (!replaced) return;
    if (session === null) {
      if (this.#isOrphan(id, gen) && (await this.fence(id, gen))) await this.#unmark(id, gen);
    } else if (Math.abs(Date.now() - session.writtenMs) > QUIET_MS) {
      const [ended] = await this.#handle.run(END_GENERATION, this.#handle.names.all(id), [session.stamp.text]);
      if (ended === 1) await this.#unmark(id, String(session.stamp.gen));
    }
  }

  /** Whether a mark has had no session for a while. A new mark without a session usually belongs to a creation under way. */
  #isOrphan(id: string, gen: string): boolean {
    const now = Date.now();
    const mark = `${id} ${gen}`;
    const since = this.#missing.get(mark) ?? now;
    if (now - since > QUIET_MS) return this.#missing.delete(mark);
    if (this.#missing.size >= MISSING_MAX) this.#missing.clear();
    this.#missing.set(mark, since);
    return false;
  }

  async #unmark(id: string, gen: string): Promise<void> {
    await this.#handle.run(UNMARK, [this.#handle.names.index("unsettled")], [id, gen]);
  }

  /**
   * Recomputes the record of a session; `record` is the one that was read before. If others keep replacing it, gives up and
   * leaves the session marked.
   */
  async #refreshRecord(id: string, record: string): Promise<{ session: StoredSession | null; replaced: boolean }> {
    let old = record;
    for (let attempt = 1; ; attempt++) {
      const session = await this.#port.loadAny(id);
      const replaced = await this.#replace(id, old, session === null ? null : recordOf(session));
      if (replaced || attempt === ATTEMPTS_MAX) return { session, replaced };
      old = await this.#recordOf(id);
    }
  }

  /** Replaces a record, if it is still `old`; returns whether it was. */
  async #replace(id: string, old: string, next: IndexRecord | null): Promise<boolean> {
    const text = next === null ? "" : JSON.stringify(next);
    if (text === old) return true;
    const before = old === "" ? null : (JSON.parse(old) as IndexRecord);
    const { keys, args } = this.#changes(id, before, next);
    const [replaced] = await this.#handle.run(REPLACE_RECORD, keys, [id, old, text, ...args]);
    if (replaced === 1 && before !== null && before.uid !== next?.uid) await this.#moveCheckpoints(id, before, next);
    return replaced === 1;
  }

  #changes(id: string, before: IndexRecord | null, next: IndexRecord | null): { keys: string[]; args: string[] } {
    const [from, to] = [before, next].map((each) => (each === null ? [] : membersOf(this.#handle.names, id, each)));
    const removed = difference(from as IndexMember[], to as IndexMember[]);
    const added = difference(to as IndexMember[], from as IndexMember[]);
    const keys = [this.#handle.names.index("records"), ...new Set([...removed, ...added].map(({ key }) => key))];
    const args = [...removed, ...added].flatMap(({ key, member }) => [String(keys.indexOf(key) + 1), member]);
    return { keys, args: [String(removed.length), ...args] };
  }

  async #moveCheckpoints(id: string, before: IndexRecord, next: IndexRecord | null): Promise<void> {
    const keys = [this.#handle.names.index("checkpoints"), this.#handle.names.index("checkpoints-of", id)];
    await this.#handle.run(MOVE_CHECKPOINTS, keys, [`${id} ${before.uid} `, next === null ? "" : `${id} ${next.uid} `]);
  }

  async #recordOf(id: string): Promise<string> {
    return (await this.#handle.command<string | null>("HGET", this.#handle.names.index("records"), id)) ?? "";
  }
}

function difference(members: readonly IndexMember[], others: readonly IndexMember[]): IndexMember[] {
  const known = new Set(others.map(({ key, member }) => `${key}\n${member}`));
  return members.filter(({ key, member }) => !known.has(`${key}\n${member}`));
}
