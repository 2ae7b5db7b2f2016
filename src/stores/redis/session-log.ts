import type { Entry } from "../../session/entry.ts";
import type { StoredRow } from "../rows/row-port.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { KeyNames } from "./key-names.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { Segment } from "./segments.ts";
import { FIND, LOAD_SESSION } from "./session-scripts.ts";
import { readSession, settingsOf, type StoredSession } from "./stored-session.ts";

const IDS_AT_ONCE = 1000;

/** Reads sessions and rows, and remembers the sessions. */
export class SessionLog {
  readonly #handle: RedisHandle;
  readonly #names: KeyNames;
  readonly #cache: SessionCache<StoredSession>;

  constructor(handle: RedisHandle, names: KeyNames, cache: SessionCache<StoredSession>) {
    this.#handle = handle;
    this.#names = names;
    this.#cache = cache;
  }

  /** A session as it stands now, deleted or not; null when there is none. */
  async loadAny(sessionId: string): Promise<StoredSession | null> {
    const known = this.#cache.get(sessionId);
    const args = known === undefined ? ["", "", ""] : knownArgs(known);
    const reply = await this.#handle.run(LOAD_SESSION, [this.#names.session(sessionId)], args);
    return this.#accept(sessionId, reply, known);
  }

  /** A live session as it stands now, or null. */
  async load(sessionId: string): Promise<StoredSession | null> {
    const session = await this.loadAny(sessionId);
    return session?.deletedAt === null ? session : null;
  }

  /** Takes in what the server says of a session. */
  #accept(sessionId: string, reply: readonly RedisReply[], known: StoredSession | undefined): StoredSession | null {
    const session = readSession(sessionId, reply, known);
    if (session === null) this.#cache.forget(sessionId);
    else this.#cache.remember(session);
    return session;
  }

  /** The row at a position of the log that a part belongs to. */
  async rowAt({ id, uid }: Segment, seq: number): Promise<StoredRow | undefined> {
    const key = this.#names.entries(id, uid);
    return rowsOf(await this.#handle.command(key, ["XRANGE", key, placeOf(seq), placeOf(seq)]))[0];
  }

  /** Some rows of a part of a log, in the order asked for. */
  async rows({ id, uid, start, end }: Segment, count: number, reverse: boolean): Promise<StoredRow[]> {
    const key = this.#names.entries(id, uid);
    const [first, last] = [placeOf(start), placeOf(end - 1)];
    const range = reverse ? ["XREVRANGE", key, last, first] : ["XRANGE", key, first, last];
    return rowsOf(await this.#handle.command(key, [...range, "COUNT", String(count)]));
  }

  /** Rows of a session by their ids, as far as it was loaded; those it does not have are left out. */
  async findRows({ segments, head }: StoredSession, ids: readonly string[]): Promise<StoredRow[]> {
    const found: StoredRow[] = [];
    let missing = ids;
    for (let index = segments.length - 1; index >= 0 && missing.length > 0; index--) {
      const { id, uid, start, end } = segments[index] as Segment;
      const bound = Math.min(end, head.version);
      if (bound <= start) continue;
      const rows = await this.#findIn(id, uid, bound, missing);
      found.push(...rows);
      const there = new Set(rows.map((row) => row.id));
      missing = missing.filter((each) => !there.has(each));
    }
    return found;
  }

  async #findIn(id: string, uid: string, bound: number, ids: readonly string[]): Promise<StoredRow[]> {
    const keys = [this.#names.positions(id, uid), this.#names.entries(id, uid)];
    const rows: StoredRow[] = [];
    for (let first = 0; first < ids.length; first += IDS_AT_ONCE) {
      const part = ids.slice(first, first + IDS_AT_ONCE);
      rows.push(...rowsOf(await this.#handle.run(FIND, keys, [String(bound), ...part])));
    }
    return rows;
  }
}

/** What tells the server how far a session is known. */
function knownArgs({ stamp, head }: StoredSession): [stamp: string, uid: string, ss: string] {
  return [stamp.text, stamp.uid, settingsOf(head)];
}

/** Where in a stream a position is; a stream has nothing at 0. */
export function placeOf(seq: number): string {
  return Number.isFinite(seq) ? String(seq + 1) : "+";
}

/** A row as it stands in a stream: one value costs the server less than two. Neither part has a line break in it. */
export function writeRow({ state, body }: Pick<StoredRow, "state" | "body">): string {
  return `${state}\n${body}`;
}

function rowsOf(reply: RedisReply): StoredRow[] {
  return (reply as readonly [string, readonly [string, string]][]).map(([place, [, text]]) => {
    const at = text.indexOf("\n");
    return new StreamRow(Number.parseInt(place, 10) - 1, text.slice(0, at), text.slice(at + 1));
  });
}

/** A row as a stream holds it: its id stands only in the entry, which most readers do not need. */
class StreamRow implements StoredRow {
  readonly seq: number;
  readonly state: string;
  readonly body: string;

  constructor(seq: number, state: string, body: string) {
    this.seq = seq;
    this.state = state;
    this.body = body;
  }

  get id(): string {
    return (JSON.parse(this.body) as Entry).id;
  }
}
