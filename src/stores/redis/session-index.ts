import { MOVE_CHECKPOINTS, READ_UNSETTLED, REPLACE_RECORD, UNMARK } from "./index-scripts.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import {
  idOfMember,
  type IndexPosition,
  type IndexRecord,
  positionsOf,
  recordOf,
  timedMember,
} from "./index-record.ts";
import { isWriteRefused } from "./redis-failure.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { END_GENERATION, FENCE } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;
const AT_ONCE = 256;
const MEMBERS_AT_ONCE_MIN = 32;
/** The most that one page of a part of the index has. */
export const MEMBERS_AT_ONCE_MAX = 1001;
/** A session that was written to a moment ago will be again, and then would have to be marked anew. */
const QUIET_MS = 1000;
const MISSING_MAX = 1000;

/** A marked session, and what the index holds of it. */
type Mark = readonly [id: string, gen: string, record: string | null];

/**
 * Finds sessions. In a cluster the index cannot be in one slot with every session, so that no script writes both. Instead:
 *
 * - Before a session is written to, it is marked in the index; the script that writes checks that the mark still counts.
 * - Whoever asks the index first brings the marked sessions in it up to date, each from the session itself.
 * - A mark is taken away by ending the session's generation, in the session, and then removing it: a writer who
 *   counts on a mark of that generation is refused and marks again.
 *
 * So the index shows every write that was acknowledged before it was asked, whoever dies in between, and an append to a
 * session that is marked costs nothing more. A record is replaced only by someone who read it before the session.
 */
export class SessionIndex {
  readonly #handle: RedisHandle;
  readonly #port: RedisPort;
  /** Since when a mark is known to have no session. */
  readonly #missing = new Map<string, number>();

  constructor(port: RedisPort) {
    this.#handle = port.handle;
    this.#port = port;
  }

  /** Must be done before a generation of a session is written to. */
  async mark(id: string, gen: number): Promise<void> {
    await this.#handle.command("ZADD", this.#handle.names.index("unsettled"), "GT", String(gen), id);
  }

  /** Brings the index up to date with everything that was written until now. */
  async settle(): Promise<void> {
    for (const refusal of (await this.settleIfWritable()).values()) throw refusal;
  }

  /**
   * Does the same as far as the server takes writes, and resolves to the sessions of which the index may be wrong because it
   * does not, each with the refusal: a full disk is no reason not to list.
   */
  async settleIfWritable(): Promise<ReadonlyMap<string, unknown>> {
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
      await Promise.all(some.map((mark) => attempt(mark[0], this.#settleMark(mark))));
    }
    const { clock, ttlSeconds } = this.#port;
    if (ttlSeconds === undefined) return refusals;
    // Sessions whose time has run out are gone without having said so.
    const end = new Date(clock().getTime() - ttlSeconds * 1000).toISOString();
    for await (const ids of this.before("updated", end, AT_ONCE))
      await Promise.all(ids.map((id) => attempt(id, this.settleOne(id))));
    return refusals;
  }

  /** Brings the index up to date with one session. */
  async settleOne(id: string): Promise<void> {
    await this.#refresh(id, await this.#recordOf(id));
  }

  /** The sessions of a sorted part of the index whose time is before another, the oldest first, in pages. */
  before(part: string, time: string, wanted: number = MEMBERS_AT_ONCE_MAX): AsyncGenerator<readonly string[]> {
    return this.#pages(this.#handle.names.index(part), "-", [`(${time}`, "BYLEX"], wanted);
  }

  /** The sessions of a sorted part after a position, or all of them, the newest first, in pages. */
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

  /** Keeps whoever marked a session that is not there from making it with that mark. */
  async fence(id: string, gen: string): Promise<boolean> {
    const [fenced] = await this.#handle.run(FENCE, this.#handle.names.all(id), [gen]);
    return fenced === 1;
  }

  async #settleMark([id, gen, record]: Mark): Promise<void> {
    const { session, replaced } = await this.#refresh(id, record ?? "");
    if (!replaced) return;
    if (session === null) {
      if (this.#isOrphan(id, gen) && (await this.fence(id, gen))) await this.#unmark(id, gen);
    } else if (Math.abs(Date.now() - session.writtenMs) > QUIET_MS) {
      const [ended] = await this.#handle.run(END_GENERATION, this.#handle.names.all(id), [session.stamp.text]);
      if (ended === 1) await this.#unmark(id, String(session.stamp.gen));
    }
  }

  /** Whether a mark has had no session for a while: whoever is about to make one should not be in the way of itself. */
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
   * Makes the record of a session what the session says; `record` is what the index held before. Where others replace it
   * all the time it is left to them, and the session stays marked.
   */
  async #refresh(id: string, record: string): Promise<{ session: StoredSession | null; replaced: boolean }> {
    let old = record;
    for (let attempt = 1; ; attempt++) {
      const session = await this.#port.loadAny(id);
      const replaced = await this.#replace(id, old, session === null ? null : recordOf(session));
      if (replaced || attempt === ATTEMPTS_MAX) return { session, replaced };
      old = await this.#recordOf(id);
    }
  }

  /** False when the record is not the old one any more. */
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
    const [from, to] = [before, next].map((each) => (each === null ? [] : positionsOf(this.#handle.names, id, each)));
    const removed = difference(from as IndexPosition[], to as IndexPosition[]);
    const added = difference(to as IndexPosition[], from as IndexPosition[]);
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

function difference(positions: readonly IndexPosition[], others: readonly IndexPosition[]): IndexPosition[] {
  const known = new Set(others.map(({ key, member }) => `${key}\n${member}`));
  return positions.filter(({ key, member }) => !known.has(`${key}\n${member}`));
}
