import { checkStoreArgument } from "../../session/check-arguments.ts";
import type { RunnableConfig } from "@langchain/core/runnables";
import * as langgraph from "@langchain/langgraph-checkpoint";
import type { JsonObject } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { listedHeads } from "../../stores/complete/list-pages.ts";
import { GraphThread } from "./graph-thread.ts";

const THREADS_REMEMBERED = 64;

/**
 * A checkpointer for LangGraph that stores checkpoints as sessions in any store.
 *
 * - A thread is a session, a checkpoint an entry with the channels that changed since its parent.
 * - Messages are turns of the session, stored once, so that search, the studio and analytics find them.
 * - A checkpoint whose parent is not the latest one begins a branch, and the session's leaf moves there.
 * - The latest checkpoint is the one that was stored last.
 */
export class SkeinSaver extends langgraph.BaseCheckpointSaver {
  readonly #store: SessionStore;
  readonly #threads = new LruCache<string, GraphThread>(THREADS_REMEMBERED);

  /** @throws {SessionError} `DRIVER_VERSION` if the installed LangGraph uses another checkpoint format. */
  constructor(store: SessionStore) {
    super();
    checkStoreArgument(store, "SkeinSaver");
    if (langgraph.emptyCheckpoint().v !== 4 || langgraph.WRITES_IDX_MAP === undefined) {
      throw new SessionError(
        "DRIVER_VERSION",
        "The installed @langchain/langgraph-checkpoint has another format of checkpoints: install version 1 of it.",
      );
    }
    this.#store = store;
  }

  override async getTuple(config: RunnableConfig): Promise<langgraph.CheckpointTuple | undefined> {
    const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const thread = this.#thread(thread_id);
    const record = await thread.find(checkpoint_ns, langgraph.getCheckpointId(config));
    return record === null ? undefined : thread.tuple(record, thread.reader());
  }

  /** Newest first. Reads the log back to the oldest checkpoint that it returns, and the values of each checkpoint. */
  override async *list(
    config: RunnableConfig,
    { limit = Number.POSITIVE_INFINITY, before, filter = {} }: langgraph.CheckpointListOptions = {},
  ): AsyncGenerator<langgraph.CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const beforeId = before?.configurable?.["checkpoint_id"];
    let left = limit;
    for await (const threadId of thread_id === undefined ? this.#threadIds() : [thread_id]) {
      const thread = this.#thread(threadId);
      const read = thread.reader();
      for await (const record of thread.checkpoints()) {
        if (left <= 0) return;
        const { id } = record.checkpoint;
        if (checkpoint_ns !== undefined && record.ns !== checkpoint_ns) continue;
        if ((checkpoint_id && id !== checkpoint_id) || (beforeId && id >= beforeId)) continue;
        const metadata = record.metadata as JsonObject;
        if (!Object.entries(filter).every(([key, value]) => metadata[key] === value)) continue;
        left--;
        yield thread.tuple(record, read);
      }
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: langgraph.Checkpoint,
    metadata: langgraph.CheckpointMetadata,
    newVersions: langgraph.ChannelVersions,
  ): Promise<RunnableConfig> {
    const { checkpoint_ns: ns = "", checkpoint_id: parent = null } = config.configurable ?? {};
    // A run that changed nothing stores its first checkpoint again.
    if (parent === checkpoint.id) return config;
    return this.#thread(required(config, "thread_id")).put({ ns, parent }, checkpoint, metadata, newVersions);
  }

  override async putWrites(config: RunnableConfig, writes: langgraph.PendingWrite[], taskId: string): Promise<void> {
    const thread = this.#thread(required(config, "thread_id"));
    const ns: string = config.configurable?.["checkpoint_ns"] ?? "";
    await thread.putWrites(ns, required(config, "checkpoint_id"), writes, taskId);
  }

  /** Deletes and purges the thread's session, so that its id can be used again. */
  override async deleteThread(threadId: string): Promise<void> {
    const { sessionId } = this.#thread(threadId);
    this.#threads.delete(threadId);
    if (await this.#store.delete(sessionId)) await this.#store.purge({ sessionId });
  }

  #thread(threadId: string): GraphThread {
    const known = this.#threads.get(threadId);
    const thread = known?.failed === false ? known : new GraphThread(this.#store, threadId, this.serde);
    this.#threads.set(threadId, thread);
    return thread;
  }

  async *#threadIds(): AsyncGenerator<string> {
    for await (const { header } of listedHeads(this.#store)) {
      const threadId = header.metadata["langgraphThread"];
      if (typeof threadId === "string") yield threadId;
    }
  }
}

function required(config: RunnableConfig, field: "thread_id" | "checkpoint_id"): string {
  const value: unknown = config.configurable?.[field];
  if (value !== undefined) return String(value);
  throw new SessionError(
    "INVALID_OPTION",
    `The config has no ${field}: pass { configurable: { ${field} } } to the graph.`,
  );
}
