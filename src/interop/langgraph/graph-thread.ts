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

/** One thread of a graph: a session, and the caches of this process for it. */
export class GraphThread {
  readonly sessionId: string;
  /** True after a failed write: the caches may then be wrong, and the thread must not be used again. */
  failed = false;
  readonly #threadId: string;
  readonly #store: SessionStore;
  readonly #values: ThreadValues;
  /** For each checkpoint, a lower bound of the number of its entries with writes. */
  readonly #writes = new LruCache<string, number>(CHECKPOINTS_REMEMBERED);
  /** For each checkpoint, the entries that hold its values. */
  readonly #channelEntries = new LruCache<string, log.ChannelEntries>(CHECKPOINTS_REMEMBERED);
  /** Serializes appends: the parent of each is the entry before. */
  #queue: Promise<unknown> = Promise.resolve();
  /** The checkpoint of the root graph that this process continues, and the last entry below it (null: unknown). */
  #at: { readonly entryId: string; readonly tail: string | null } | null = null;

  constructor(store: SessionStore, threadId: string, serde: langgraph.SerializerProtocol) {
    this.#store = store;
    this.#threadId = threadId;
    this.#values = new ThreadValues(serde);
    this.sessionId = derivedSessionId("langgraph", threadId);
  }

  /** All checkpoints, newest first. */
  async *checkpoints(): AsyncGenerator<log.CheckpointRecord> {
    for await (const entry of this.#store.read(this.sessionId, { reverse: true })) {
      const record = log.dataOf<log.CheckpointRecord>(entry, log.CHECKPOINT);
      if (record !== null) yield record;
    }
  }

  /** The checkpoint with this id; for an empty id, the one that was stored last. */
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

  /** A function that reads entries by id. Use one reader for several entries: it reads the log backward once. */
  reader(): ReadEntry {
    return cachedLookup(this.#store, this.sessionId);
  }

  /** A checkpoint with its values and its pending writes. */
  async tuple(record: log.CheckpointRecord, read: ReadEntry): Promise<langgraph.CheckpointTuple> {
    const { ns, parent } = record;
    const channelEntries = log.channelEntriesOf(record);
    this.#channelEntries.set(log.entryIdOf(ns, record.checkpoint.id), channelEntries);
    const channel_values = await this.#values.values(channelEntries, read);
    const checkpoint = { ...langgraph.deepCopy(record.checkpoint), channel_values };
    if (checkpoint.v < 4 && parent !== null) {
      // Before version 4, sends to tasks were stored among the pending writes of the parent.
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

  /** Stores a checkpoint as the changes since its parent. */
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
      // The values of tasks were encoded by `putWrites`; the next tasks may already change the same objects.
      const written = before !== null && this.#writes.get(before) !== undefined;
      const above = before === null ? {} : this.#channelEntries.get(before);
      const channelEntries = above ?? log.channelEntriesOf(await this.#data(log.CHECKPOINT, before as string));
      const read = this.reader();
      const channels: Record<string, log.ChannelChange | string> = {};
      for (const name of Object.keys(checkpoint.channel_versions)) {
        const at = channelEntries[name] ?? null;
        if (name in newVersions && name in values) {
          channels[name] = await this.#values.change({ entryId, name, at, written }, values[name], drafts, read);
        } else if (at !== null && !(name in newVersions)) channels[name] = at;
      }
      const about = await this.#values.encode(metadata, drafts);
      const record: log.CheckpointRecord = { ns, parent, checkpoint, metadata: about, channels };
      this.#channelEntries.set(entryId, log.channelEntriesOf(record));
      // Marks the namespace: without the mark, a search for a sub-graph without checkpoints would read the whole log.
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

  /** Stores the pending writes of a task to a checkpoint. */
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
          // Another process, now or earlier, used this number for its writes: try the next one.
          if (!(error instanceof SessionError && error.code === "ENTRY_EXISTS")) throw error;
        }
      }
    });
  }

  /** The pending writes of a checkpoint. At an index >= 0 a task's first write counts, at a special (negative) index its last. */
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
   * Appends drafts that belong to a checkpoint, and returns the leaf. Drafts of the current checkpoint or of a sub-graph are
   * appended after the last entry below the current checkpoint; those of another checkpoint begin a branch.
   */
  async #append(ns: string, checkpoint: string | null, drafts: readonly EntryDraft[]): Promise<string | null> {
    const elsewhere = ns === "" && checkpoint !== null && checkpoint !== this.#at?.entryId;
    // Writes to a checkpoint may arrive before the checkpoint itself is stored; only a stored one begins a branch.
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
