import type { Entry } from "../../session/entry.ts";
import type { SessionStore } from "../../session/store.ts";
import {
  type CheckpointRecord,
  checkpointEntryId,
  checkpointOf,
  type WritesRecord,
  writesOf,
} from "./checkpoint-record.ts";
import { type SerializedMessage, serializedOf } from "./message-turn.ts";

const PAGE_FIRST = 16;
const PAGE_MAX = 1024;

/** Reads a thread's log from its end, no further than it has to, and keeps what it passed. */
export class ThreadLog {
  readonly #entries: AsyncGenerator<Entry, void, undefined>;
  readonly #checkpoints = new Map<string, CheckpointRecord>();
  readonly #turns = new Map<string, SerializedMessage>();
  readonly #writes = new Map<string, WritesRecord[]>();
  readonly #passed = new Set<string>();
  /** The last node of what was read. */
  lastNode: string | null = null;

  private constructor(entries: AsyncGenerator<Entry, void, undefined>) {
    this.#entries = entries;
  }

  /** From the end of the log. */
  static fromEnd(store: SessionStore, sessionId: string): ThreadLog {
    return new ThreadLog(backward(store, sessionId, undefined));
  }

  /** From a checkpoint's entry. What was written to it later is read, too, so that this costs all that came after it. */
  static async fromCheckpoint(store: SessionStore, sessionId: string, { id, seq }: Entry): Promise<ThreadLog> {
    const log = new ThreadLog(backward(store, sessionId, seq + 1));
    const later: Entry[] = [];
    for await (const entry of store.read(sessionId, { after: seq })) later.push(entry);
    for (const entry of later.reverse()) log.#note(entry);
    await log.checkpoint(id);
    return log;
  }

  /** The next checkpoint, going back; null at the beginning of the log. */
  async next(): Promise<CheckpointRecord | null> {
    for (let entry = await this.#read(); entry !== null; entry = await this.#read()) {
      const record = checkpointOf(entry);
      if (record !== null) return record;
    }
    return null;
  }

  /** A checkpoint by its entry's id; null when it is not there. */
  async checkpoint(entryId: string): Promise<CheckpointRecord | null> {
    await this.#readTo(() => this.#passed.has(entryId));
    return this.#checkpoints.get(entryId) ?? null;
  }

  /** What turns say, of those that can be found. */
  async turns(ids: ReadonlySet<string>): Promise<Map<string, SerializedMessage>> {
    const wanted = [...ids];
    await this.#readTo(() => {
      while (wanted.length > 0 && this.#passed.has(wanted[wanted.length - 1] as string)) wanted.pop();
      return wanted.length === 0;
    });
    return new Map(
      [...ids].flatMap((id) => (this.#turns.has(id) ? [[id, this.#turns.get(id) as SerializedMessage]] : [])),
    );
  }

  /** What was written to a checkpoint that was read: the first write of a task at each place, the last one of a kind of its own. */
  async writes({
    ns,
    id,
    early,
  }: CheckpointRecord): Promise<(readonly [string, string, number, WritesRecord["writes"][0][2]])[]> {
    if (early !== undefined) await this.#readTo(() => this.#passed.has(early));
    const byPlace = new Map<string, readonly [string, string, number, WritesRecord["writes"][0][2]]>();
    for (const { task, writes } of (this.#writes.get(checkpointEntryId(ns, id)) ?? []).toReversed()) {
      for (const [channel, index, value] of writes) {
        const place = `${task},${index}`;
        if (index < 0 || !byPlace.has(place)) byPlace.set(place, [task, channel, index, value]);
      }
    }
    return [...byPlace.values()];
  }

  async #readTo(reached: () => boolean): Promise<void> {
    while (!reached() && (await this.#read()) !== null);
  }

  async #read(): Promise<Entry | null> {
    const { value } = await this.#entries.next();
    if (!value) return null;
    this.#note(value);
    return value;
  }

  #note(entry: Entry): void {
    this.#passed.add(entry.id);
    if (entry.type === "message" || entry.type === "custom") this.lastNode ??= entry.id;
    const turn = entry.type === "message" ? serializedOf(entry.message) : null;
    if (turn !== null) this.#turns.set(entry.id, turn);
    const checkpoint = checkpointOf(entry);
    if (checkpoint !== null) this.#checkpoints.set(entry.id, checkpoint);
    const writes = writesOf(entry);
    if (writes === null) return;
    const key = checkpointEntryId(writes.ns, writes.checkpoint);
    this.#writes.set(key, [...(this.#writes.get(key) ?? []), writes]);
  }
}

async function* backward(
  store: SessionStore,
  sessionId: string,
  from: number | undefined,
): AsyncGenerator<Entry, void, undefined> {
  let before = from;
  for (let limit = PAGE_FIRST; ; limit = Math.min(limit * 2, PAGE_MAX)) {
    let read = 0;
    const range = before === undefined ? {} : { before };
    for await (const entry of store.read(sessionId, { reverse: true, limit, ...range })) {
      read++;
      before = entry.seq;
      yield entry;
    }
    if (read < limit) return;
  }
}
