import type { RunnableConfig } from "@langchain/core/runnables";
import * as langgraph from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { lookBack } from "../../tree/path-reader.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import {
  CHECKPOINT,
  type ChannelChange,
  type CheckpointRecord,
  dataOf,
  entryIdOf,
  NAMESPACE,
  WRITES,
  type WritesRecord,
} from "./checkpoint-record.ts";
import { type ReadEntry, ThreadValues } from "./thread-values.ts";

const CHECKPOINTS_REMEMBERED = 16;

/** What this process knows of a checkpoint. */
interface Known {
  readonly entryId: string;
  /** Null while it is not stored. */
  record: CheckpointRecord | null;
  /** How many entries with writes it has at least. */
  writes: number;
  /** The last entry below it, where that is known. */
  tail: string | null;
}

/** One thread of a graph: a session, and what this process remembers of it. */
export class GraphThread {
  readonly sessionId: string;
  readonly #threadId: string;
  readonly #store: SessionStore;
  readonly #serde: langgraph.SerializerProtocol;
  #values: ThreadValues;
  readonly #known = new LruCache<string, Known>(CHECKPOINTS_REMEMBERED);
  /** Appends follow each other, since each hangs on the one before. */
  #queue: Promise<unknown> = Promise.resolve();
  /** The checkpoint of the outermost graph that this process goes on from. */
  #at: Known | null = null;

  constructor(store: SessionStore, threadId: string, serde: langgraph.SerializerProtocol) {
    this.#store = store;
    this.#threadId = threadId;
    this.#serde = serde;
    this.#values = new ThreadValues(serde);
    this.sessionId = derivedSessionId("langgraph", threadId);
  }

  /** All checkpoints, the latest first. */
  async *checkpoints(): AsyncGenerator<CheckpointRecord> {
    for await (const entry of this.#store.read(this.sessionId, { reverse: true })) {
      const record = dataOf<CheckpointRecord>(entry, CHECKPOINT);
      if (record !== null) yield record;
    }
  }

  /** A checkpoint, or without an id the one that was stored last. */
  async find(ns: string, id: string): Promise<CheckpointRecord | null> {
    if (id !== "") return this.#data<CheckpointRecord>(CHECKPOINT, ns, id);
    if (ns !== "" && (await this.#data(NAMESPACE, NAMESPACE, ns)) === null) return null;
    for await (const record of this.checkpoints()) {
      if (record.ns !== ns) continue;
      const known = this.#know(ns, record.checkpoint.id, record);
      if (ns === "" && known !== this.#at) this.#at = Object.assign(known, { tail: null });
      return record;
    }
    return null;
  }

  /** Gives entries by their ids; whoever needs several takes one reader for all of them. */
  reader(): ReadEntry {
    return lookBack(this.#store, this.sessionId);
  }

  /** A checkpoint with its values and what was written to it. */
  async tuple(record: CheckpointRecord, read: ReadEntry): Promise<langgraph.CheckpointTuple> {
    const { ns, parent } = record;
    const checkpoint = { ...langgraph.deepCopy(record.checkpoint), channel_values: {} as Record<string, unknown> };
    this.#know(ns, checkpoint.id, record);
    for (const [name, entryId] of Object.entries(record.channels)) {
      checkpoint.channel_values[name] = await this.#values.channel(entryId, name, read);
    }
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
    { ns, parent }: Pick<CheckpointRecord, "ns" | "parent">,
    { channel_values: values, ...checkpoint }: langgraph.Checkpoint,
    metadata: langgraph.CheckpointMetadata,
    newVersions: langgraph.ChannelVersions,
  ): Promise<RunnableConfig> {
    return this.#inTurn(async () => {
      const entryId = entryIdOf(ns, checkpoint.id);
      const before = parent === null ? null : await this.#stored(ns, parent);
      const channels: Record<string, string> = {};
      const changed: Record<string, ChannelChange> = {};
      const drafts: EntryDraft[] = [];
      const read = this.reader();
      // What tasks returned was compared when it was written, and the next ones may change it already.
      const written = before !== null && before.writes > 0;
      for (const name of Object.keys(checkpoint.channel_versions)) {
        const on = before?.record?.channels[name] ?? null;
        if (name in newVersions && name in values) {
          changed[name] = await this.#values.change({ entryId, name, on, written }, values[name], drafts, read);
          channels[name] = entryId;
        } else if (!(name in newVersions) && on !== null) channels[name] = on;
      }
      const about = await this.#values.encode(metadata, drafts);
      const record: CheckpointRecord = { ns, parent, checkpoint, metadata: about, channels, changed };
      // Looking for a sub-graph that has no checkpoints would read the whole log.
      if (ns !== "") drafts.push(draftOf(NAMESPACE, entryIdOf(NAMESPACE, ns), ns));
      drafts.push(draftOf(CHECKPOINT, entryId, record));
      const leafId = await this.#append(ns, before, drafts);
      const known = this.#know(ns, checkpoint.id, record);
      if (ns === "") {
        this.#at = Object.assign(known, { tail: entryId });
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
      const known = await this.#stored(ns, checkpointId);
      for (;;) {
        const draft = draftOf(WRITES, entryIdOf(known.entryId, known.writes++), { task, writes: encoded });
        try {
          await this.#append(ns, known, [...drafts, draft]);
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
      const record = await this.#data<WritesRecord>(WRITES, entryIdOf(ns, id), number);
      if (record === null) return [...byIndex.values()];
      for (const [channel, writeIndex, value] of record.writes) {
        const key = `${record.task},${writeIndex}`;
        if (writeIndex >= 0 && byIndex.has(key)) continue;
        byIndex.set(key, [record.task, channel, await this.#values.decode(value, read)]);
      }
    }
  }

  async #data<T>(customType: string, ...words: readonly (string | number)[]): Promise<T | null> {
    return dataOf<T>(await this.#store.getEntry(this.sessionId, entryIdOf(...words)), customType);
  }

  #know(ns: string, id: string, record: CheckpointRecord | null = null): Known {
    const entryId = entryIdOf(ns, id);
    const known = this.#known.get(entryId) ?? { entryId, record, writes: 0, tail: null };
    known.record ??= record;
    this.#known.set(entryId, known);
    return known;
  }

  /** What is known of a checkpoint, once it was looked for. */
  async #stored(ns: string, id: string): Promise<Known> {
    const known = this.#know(ns, id);
    known.record ??= await this.#data<CheckpointRecord>(CHECKPOINT, ns, id);
    return known;
  }

  #config(ns: string, checkpointId: string): RunnableConfig {
    return { configurable: { thread_id: this.#threadId, checkpoint_ns: ns, checkpoint_id: checkpointId } };
  }

  /**
   * Appends what belongs to a checkpoint, and gives the leaf. What belongs to the one that this process is at, or to a
   * sub-graph, goes on from the last entry there; what belongs to another one begins a branch.
   */
  async #append(ns: string, known: Known | null, drafts: readonly EntryDraft[]): Promise<string | null> {
    if (ns === "" && known !== this.#at && known?.record) this.#at = Object.assign(known, { tail: known.entryId });
    const at = this.#at;
    const where = at === null ? {} : at.tail === null ? { below: at.entryId } : { onto: at.tail };
    const header = { id: this.sessionId, metadata: { langgraphThread: this.#threadId } };
    const { head, entries } = await appendToSession(this.#store, header, drafts, where);
    if (at !== null) at.tail = entries[entries.length - 1]?.id as string;
    return head.leafId;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {
      // What was noted may not be stored.
      this.#values = new ThreadValues(this.#serde);
      this.#at = null;
    });
    return done;
  }
}

function draftOf(customType: string, id: string, data: unknown): EntryDraft {
  return { type: "custom", customType, id, data: data as JsonValue };
}
