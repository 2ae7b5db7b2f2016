import type { RunnableConfig } from "@langchain/core/runnables";
import * as langgraph from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { cachedLookup } from "../../tree/path-reader.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import * as log from "./checkpoint-record.ts";
import { type ReadEntry, ThreadValues } from "./thread-values.ts";

const CHECKPOINTS_REMEMBERED = 16;

/** One thread of a graph: a session, and what this process remembers of it. */
export class GraphThread {
  readonly sessionId: string;
  /** Whether something was not stored, so that what is remembered may be wrong. */
  failed = false;
  readonly #threadId: string;
  readonly #store: SessionStore;
  readonly #values: ThreadValues;
  /** How many entries with writes a checkpoint has at least. */
  readonly #writes = new LruCache<string, number>(CHECKPOINTS_REMEMBERED);
  /** Where the values of checkpoints are. */
  readonly #places = new LruCache<string, log.Places>(CHECKPOINTS_REMEMBERED);
  /** Appends follow each other, since each hangs on the one before. */
  #queue: Promise<unknown> = Promise.resolve();
  /** The checkpoint of the outermost graph that this process goes on from, and the last entry below it, where that is known. */
  #at: { readonly entryId: string; readonly tail: string | null } | null = null;

  constructor(store: SessionStore, threadId: string, serde: langgraph.SerializerProtocol) {
    this.#store = store;
    this.#threadId = threadId;
    this.#values = new ThreadValues(serde);
    this.sessionId = derivedSessionId("langgraph", threadId);
  }

  /** All checkpoints, the latest first. */
  async *checkpoints(): AsyncGenerator<log.CheckpointRecord> {
    for await (const entry of this.#store.read(this.sessionId, { reverse: true })) {
      const record = log.dataOf<log.CheckpointRecord>(entry, log.CHECKPOINT);
      if (record !== null) yield record;
    }
  }

  /** A checkpoint, or without an id the one that was stored last. */
  async find(ns: string, id: string): Promise<log.CheckpointRecord | null> {
    if (id !== "") return this.#data<log.CheckpointRecord>(log.CHECKPOINT, ns, id);
    if (ns !== "" && (await this.#data(log.NAMESPACE, log.NAMESPACE, ns)) === null) return null;
    for await (const record of this.checkpoints()) {
      if (record.ns !== ns) continue;
      const entryId = log.entryIdOf(ns, record.checkpoint.id);
      if (ns === "" && this.#at?.entryId !== entryId) this.#at = { entryId, tail: null };
      return record;
    }
    return null;
  }

  /** Gives entries by their ids; whoever needs several takes one reader for all of them. */
  reader(): ReadEntry {
    return cachedLookup(this.#store, this.sessionId);
  }

  /** A checkpoint with its values and what was written to it. */
  async tuple(record: log.CheckpointRecord, read: ReadEntry): Promise<langgraph.CheckpointTuple> {
    const { ns, parent } = record;
    const places = log.placesOf(record);
    this.#places.set(log.entryIdOf(ns, record.checkpoint.id), places);
    const channel_values = await this.#values.values(places, read);
    const checkpoint = { ...langgraph.deepCopy(record.checkpoint), channel_values };
    if (checkpoint.v < 4 && parent !== null) {
      // Before version 4, what was sent to tasks stood among the parent's writes.
      const sent = (await this.#writesTo(ns, parent, read)).filter(([, channel]) => channel === langgraph.TASKS);
      const versions = Object.values(checkpoint.channel_versions);
      checkpoint.channel_values[langgraph.TASKS] = sent.map(([, , value]) => value);
      checkpoint.channel_versions[langgraph.TASKS] = langgraph.maxChannelVersion(1, ...versions);
    }
    return {
      config: this.#config(ns, checkpoint.id),
      checkpoint,
      metadata: (await this.#values.decode(record.metadata, read)) as langgraph.CheckpointMetadata,
      pendingWrites: await this.#writesTo(ns, checkpoint.id, read),
      ...(parent === null ? {} : { parentConfig: this.#config(ns, parent) }),
    };
  }

  /** Stores a checkpoint: what changed of it since its parent. */
  put(
    { ns, parent }: Pick<log.CheckpointRecord, "ns" | "parent">,
    { channel_values: values, ...checkpoint }: langgraph.Checkpoint,
    metadata: langgraph.CheckpointMetadata,
    newVersions: langgraph.ChannelVersions,
  ): Promise<RunnableConfig> {
    return this.#inTurn(async () => {
      const entryId = log.entryIdOf(ns, checkpoint.id);
      const before = parent === null ? null : log.entryIdOf(ns, parent);
      const drafts: EntryDraft[] = [];
      // What tasks returned was encoded when it was written, and the next ones may change it already.
      const written = before !== null && this.#writes.get(before) !== undefined;
      const above = before === null ? {} : this.#places.get(before);
      const places = above ?? log.placesOf(await this.#data(log.CHECKPOINT, before as string));
      const read = this.reader();
      const channels: Record<string, log.ChannelChange | string> = {};
      for (const name of Object.keys(checkpoint.channel_versions)) {
        const at = places[name] ?? null;
        if (name in newVersions && name in values) {
          channels[name] = await this.#values.change({ entryId, name, at, written }, values[name], drafts, read);
        } else if (at !== null && !(name in newVersions)) channels[name] = at;
      }
      const about = await this.#values.encode(metadata, drafts);
      const record: log.CheckpointRecord = { ns, parent, checkpoint, metadata: about, channels };
      this.#places.set(entryId, log.placesOf(record));
      // Looking for a sub-graph that has no checkpoints would read the whole log.
      if (ns !== "") drafts.push(draftOf(log.NAMESPACE, log.entryIdOf(log.NAMESPACE, ns), ns));
      drafts.push(draftOf(log.CHECKPOINT, entryId, record));
      const leafId = await this.#append(ns, before, drafts);
      if (ns === "") {
        this.#at = { entryId, tail: entryId };
        if (leafId !== entryId) await this.#store.append(this.sessionId, [{ type: "leaf", targetId: entryId }]);
      }
      return this.#config(ns, checkpoint.id);
    });
  }

  /** Stores what a task wrote to a checkpoint. */
  putWrites(ns: string, checkpointId: string, writes: langgraph.PendingWrite[], task: string): Promise<void> {
    return this.#inTurn(async () => {
      const drafts: EntryDraft[] = [];
      const encoded: [string, number, JsonValue][] = [];
      for (const [index, [channel, value]] of writes.entries()) {
        const writeIndex = langgraph.WRITES_IDX_MAP[channel] ?? index;
        encoded.push([channel, writeIndex, await this.#values.encode(value, drafts)]);
      }
      const entryId = log.entryIdOf(ns, checkpointId);
      for (let number = this.#writes.get(entryId) ?? 0; ; number++) {
        const draft = draftOf(log.WRITES, log.entryIdOf(entryId, number), { task, writes: encoded });
        this.#writes.set(entryId, number + 1);
        try {
          await this.#append(ns, entryId, [...drafts, draft]);
          return;
        } catch (error) {
          // Another process wrote to this checkpoint, or an earlier one did.
          if (!(error instanceof SessionError && error.code === "ENTRY_EXISTS")) throw error;
        }
      }
    });
  }

  /** What was written to a checkpoint: the first write of a task at each index, the last one of a kind of its own. */
  async #writesTo(ns: string, id: string, read: ReadEntry): Promise<langgraph.CheckpointPendingWrite[]> {
    const byIndex = new Map<string, langgraph.CheckpointPendingWrite>();
    for (let number = 0; ; number++) {
      const record = await this.#data<log.WritesRecord>(log.WRITES, log.entryIdOf(ns, id), number);
      if (record === null) return [...byIndex.values()];
      for (const [channel, writeIndex, value] of record.writes) {
        const key = `${record.task},${writeIndex}`;
        if (writeIndex >= 0 && byIndex.has(key)) continue;
        byIndex.set(key, [record.task, channel, await this.#values.decode(value, read)]);
      }
    }
  }

  async #data<T>(customType: string, ...words: readonly (string | number)[]): Promise<T | null> {
    return log.dataOf<T>(await this.#store.getEntry(this.sessionId, log.entryIdOf(...words)), customType);
  }

  #config(ns: string, checkpointId: string): RunnableConfig {
    return { configurable: { thread_id: this.#threadId, checkpoint_ns: ns, checkpoint_id: checkpointId } };
  }

  /**
   * Appends what belongs to a checkpoint, and gives the leaf. What belongs to the one that this process is at, or to a
   * sub-graph, goes on from the last entry there; what belongs to another one begins a branch.
   */
  async #append(ns: string, checkpoint: string | null, drafts: readonly EntryDraft[]): Promise<string | null> {
    const elsewhere = ns === "" && checkpoint !== null && checkpoint !== this.#at?.entryId;
    // The graph does not wait for a checkpoint to be stored before it stores what is written to it.
    if (elsewhere && (await this.#data(log.CHECKPOINT, checkpoint)) !== null) {
      this.#at = { entryId: checkpoint, tail: checkpoint };
    }
    const at = this.#at;
    const where = at === null ? {} : at.tail === null ? { below: at.entryId } : { onto: at.tail };
    const header = { id: this.sessionId, metadata: { langgraphThread: this.#threadId } };
    const { head, entries } = await appendToSession(this.#store, header, drafts, where);
    if (at !== null) this.#at = { ...at, tail: entries[entries.length - 1]?.id as string };
    return head.leafId;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done;
    done.catch(() => {
      this.failed = true;
    });
    return done;
  }
}

function draftOf(customType: string, id: string, data: unknown): EntryDraft {
  return { type: "custom", customType, id, data: data as JsonValue };
}
