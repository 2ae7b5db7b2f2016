import type { RunnableConfig } from "@langchain/core/runnables";
import * as langgraph from "@langchain/langgraph-checkpoint";
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
  DeltaChannelHistory,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { LruCache } from "../../internal/lru-cache.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { type CheckpointRecord, checkpointEntryId, type Metadata } from "./checkpoint-record.ts";
import { GraphThread } from "./graph-thread.ts";
import type { ThreadLog } from "./thread-log.ts";

const THREADS_REMEMBERED = 64;
/** How many checkpoints a listing finds before it makes the values of the oldest of them. */
const LISTED_AT_ONCE = 100;

/**
 * Keeps the checkpoints of LangGraph in sessions of any store.
 *
 * - A thread is a session, a checkpoint an entry with the channels that changed since its parent.
 * - Messages are turns of the session, stored once, so that search, the studio and analytics find them.
 * - A checkpoint below an older one begins a branch, and the session's leaf follows it.
 * - The latest checkpoint is the one that was stored last.
 */
export class SkeinSaver extends langgraph.BaseCheckpointSaver {
  readonly #store: SessionStore;
  readonly #threads = new LruCache<string, GraphThread>(THREADS_REMEMBERED);

  /** @throws {SessionError} `DRIVER_VERSION` when the installed LangGraph has another format of checkpoints. */
  constructor(store: SessionStore) {
    super();
    if (langgraph.emptyCheckpoint().v !== 4 || langgraph.WRITES_IDX_MAP === undefined) {
      throw new SessionError(
        "DRIVER_VERSION",
        "The installed @langchain/langgraph-checkpoint has another format of checkpoints: install version 1 of it.",
      );
    }
    this.#store = store;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const thread = this.#thread(thread_id);
    const found = await thread.find(checkpoint_ns, langgraph.getCheckpointId(config) || null);
    return found === null ? undefined : this.#tuple(thread, found.log, found.record);
  }

  /** Newest first. Costs what was stored since the oldest checkpoint that it gives, and the values of each. */
  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const beforeId = options.before?.configurable?.["checkpoint_id"];
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    for await (const thread of thread_id === undefined ? this.#allThreads() : [this.#thread(thread_id)]) {
      const log = thread.log();
      for (let ended = false; !ended && left > 0; ) {
        const records: CheckpointRecord[] = [];
        while (records.length < Math.min(left, LISTED_AT_ONCE)) {
          const record = await log.next();
          ended = record === null;
          if (record === null) break;
          if (checkpoint_ns !== undefined && record.ns !== checkpoint_ns) continue;
          if (checkpoint_id && record.id !== checkpoint_id) continue;
          if (beforeId && record.id >= beforeId) continue;
          if (options.filter && !(await this.#fits(thread, record, options.filter))) continue;
          records.push(record);
        }
        left -= records.length;
        // Oldest first, as the values of a checkpoint are made of its parent's.
        const tuples: CheckpointTuple[] = [];
        for (const record of records.toReversed()) tuples.push(await this.#tuple(thread, log, record));
        yield* tuples.reverse();
      }
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
    const thread = this.#thread(requiredThread(config));
    // A run that ends where it began says so again.
    if (checkpoint_id !== checkpoint.id) {
      await thread.put(checkpoint_ns, checkpoint_id ?? null, checkpoint, metadata, Object.keys(newVersions));
    }
    return thread.config(checkpoint_ns, checkpoint.id);
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
    const thread = this.#thread(requiredThread(config));
    if (checkpoint_id === undefined) throw missing("checkpoint_id");
    const placed = writes.map(
      ([channel, value], index) => [channel, langgraph.WRITES_IDX_MAP[channel] ?? index, value] as const,
    );
    await thread.putWrites(checkpoint_ns, checkpoint_id, placed, taskId);
  }

  /** Deletes the thread's session; it can be brought back until the store is purged, and its id is taken until then. */
  override async deleteThread(threadId: string): Promise<void> {
    await this.#store.delete(this.#thread(threadId).sessionId);
    this.#threads.delete(threadId);
  }

  override async getDeltaChannelHistory({
    config,
    channels,
  }: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
    const writes = new Map<string, CheckpointPendingWrite[]>(channels.map((channel) => [channel, []]));
    const seeds = new Map<string, unknown>();
    const thread = thread_id === undefined || channels.length === 0 ? null : this.#thread(thread_id);
    const found = await thread?.find(checkpoint_ns, langgraph.getCheckpointId(config) || null);
    let record = found?.record ?? null;
    while (thread && found && record?.parent != null && seeds.size < channels.length) {
      record = await found.log.checkpoint(checkpointEntryId(record.ns, record.parent));
      if (record === null) break;
      const wanted = channels.filter((channel) => !seeds.has(channel));
      const step = (await found.log.writes(record)).filter(([, channel]) => wanted.includes(channel));
      step.sort(([a, , i], [b, , j]) => (a === b ? i - j : a < b ? -1 : 1));
      for (const [task, channel, , value] of step.reverse()) {
        writes.get(channel)?.push([task, channel, await thread.decode(found.log, value)]);
      }
      const stored = wanted.filter((channel) => record?.changed[channel]);
      const values = stored.length === 0 ? {} : await thread.values(found.log, record);
      for (const channel of stored) seeds.set(channel, values[channel]);
    }
    const history = ([channel, collected]: [string, CheckpointPendingWrite[]]): [string, DeltaChannelHistory] => [
      channel,
      { writes: collected.reverse(), ...(seeds.has(channel) ? { seed: seeds.get(channel) } : {}) },
    ];
    return Object.fromEntries([...writes].map(history));
  }

  #thread(threadId: string): GraphThread {
    const thread = this.#threads.get(threadId) ?? new GraphThread(this.#store, threadId, this.serde);
    this.#threads.set(threadId, thread);
    return thread;
  }

  async *#allThreads(): AsyncGenerator<GraphThread> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await this.#store.list(cursor === undefined ? {} : { cursor });
      for (const { header } of page.items) {
        const threadId = header.metadata["langgraphThread"];
        if (typeof threadId === "string") yield this.#thread(threadId);
      }
      cursor = page.next;
    }
  }

  async #fits(thread: GraphThread, { metadata }: CheckpointRecord, filter: Record<string, unknown>): Promise<boolean> {
    const decoded = (await thread.decode(thread.log(), metadata)) as Metadata;
    return Object.entries(filter).every(([key, value]) => decoded[key] === value);
  }

  async #tuple(thread: GraphThread, log: ThreadLog, record: CheckpointRecord): Promise<CheckpointTuple> {
    const writes: CheckpointPendingWrite[] = [];
    for (const [task, channel, , value] of await log.writes(record)) {
      writes.push([task, channel, await thread.decode(log, value)]);
    }
    const { ns, id, v, ts, versions, seen, parent } = record;
    const checkpoint: Checkpoint = {
      v,
      id,
      ts,
      channel_values: await thread.values(log, record),
      channel_versions: { ...versions },
      versions_seen: langgraph.deepCopy(seen) as Checkpoint["versions_seen"],
    };
    if (v < 4 && parent !== null) await this.#movePendingSends(thread, log, record, checkpoint);
    return {
      config: thread.config(ns, id),
      checkpoint,
      metadata: (await thread.decode(log, record.metadata)) as Metadata,
      pendingWrites: writes,
      ...(parent === null ? {} : { parentConfig: thread.config(ns, parent) }),
    };
  }

  /** Before version 4, what was sent to tasks stood among the parent's writes. */
  async #movePendingSends(
    thread: GraphThread,
    log: ThreadLog,
    { ns, parent }: CheckpointRecord,
    { channel_values, channel_versions }: Checkpoint,
  ): Promise<void> {
    const record = await log.checkpoint(checkpointEntryId(ns, parent ?? ""));
    const writes = record === null ? [] : await log.writes(record);
    const sends = writes.filter(([, channel]) => channel === langgraph.TASKS);
    channel_values[langgraph.TASKS] = await Promise.all(sends.map(([, , , value]) => thread.decode(log, value)));
    const versions = Object.values(channel_versions);
    channel_versions[langgraph.TASKS] =
      versions.length > 0 ? langgraph.maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

function requiredThread(config: RunnableConfig): string {
  const threadId: unknown = config.configurable?.["thread_id"];
  if (threadId === undefined) throw missing("thread_id");
  return String(threadId);
}

function missing(field: string): SessionError {
  return new SessionError(
    "INVALID_OPTION",
    `The config has no ${field}: pass { configurable: { ${field} } } to the graph.`,
  );
}
