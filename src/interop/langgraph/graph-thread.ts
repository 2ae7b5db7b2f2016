import type { RunnableConfig } from "@langchain/core/runnables";
import type { Checkpoint, CheckpointMetadata, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import type { EntryDraft } from "../../session/entry.ts";
import type { SessionHead } from "../../session/fold.ts";
import { APPEND_ENTRIES_MAX } from "../../session/limits.ts";
import type { SessionStore } from "../../session/store.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import {
  asData,
  CHECKPOINT,
  type ChannelChange,
  type CheckpointRecord,
  checkpointEntryId,
  checkpointOf,
  NAMESPACE,
  namespaceEntryId,
  WRITES,
} from "./checkpoint-record.ts";
import { ThreadLog } from "./thread-log.ts";
import {
  type ChannelValue,
  type NewTurns,
  isTurn,
  noTurns,
  splice,
  ThreadValues,
  turnIn,
  turnsIn,
} from "./thread-values.ts";

type Channels = ReadonlyMap<string, ChannelValue>;

const CHECKPOINTS_REMEMBERED = 16;
const NAMESPACES_REMEMBERED = 1000;

/** A checkpoint that was found, and the log that it was found in. */
export interface FoundCheckpoint {
  readonly log: ThreadLog;
  readonly record: CheckpointRecord;
}

/** One thread of a graph: a session, and what this process remembers of it. */
export class GraphThread {
  readonly sessionId: string;
  readonly #threadId: string;
  readonly #store: SessionStore;
  readonly #values: ThreadValues;
  /** What is at checkpoints that were stored or read last, by their entries. */
  readonly #channels = new LruCache<string, Channels>(CHECKPOINTS_REMEMBERED);
  readonly #namespaces = new LruCache<string, true>(NAMESPACES_REMEMBERED);
  /** The first writes to checkpoints that are not stored yet, by the checkpoints' entries. */
  readonly #early = new LruCache<string, string>(CHECKPOINTS_REMEMBERED);
  /** Checkpoints that tasks wrote to. */
  readonly #written = new LruCache<string, true>(CHECKPOINTS_REMEMBERED);
  /** Appends follow each other, since each hangs on the one before. */
  #queue: Promise<unknown> = Promise.resolve();
  /** The checkpoint of the outermost graph that this process goes on from, and the entry that the next one hangs on. */
  #at: { readonly checkpoint: string; readonly tail: string } | null = null;

  constructor(store: SessionStore, threadId: string, serde: SerializerProtocol) {
    this.#store = store;
    this.#threadId = threadId;
    this.sessionId = derivedSessionId("langgraph", threadId);
    this.#values = new ThreadValues(serde);
  }

  /** The config that names a checkpoint. */
  config(ns: string, checkpointId: string): RunnableConfig {
    return { configurable: { thread_id: this.#threadId, checkpoint_ns: ns, checkpoint_id: checkpointId } };
  }

  /** The log from its end. */
  log(): ThreadLog {
    return ThreadLog.fromEnd(this.#store, this.sessionId);
  }

  /** A checkpoint, or the one that was stored last. */
  async find(ns: string, checkpointId: string | null): Promise<FoundCheckpoint | null> {
    if (checkpointId !== null) {
      const entry = await this.#store.getEntry(this.sessionId, checkpointEntryId(ns, checkpointId));
      const record = checkpointOf(entry);
      if (entry === null || record === null) return null;
      return { record, log: await ThreadLog.fromCheckpoint(this.#store, this.sessionId, entry) };
    }
    if (ns !== "" && !(await this.#hasNamespace(ns))) return null;
    const log = this.log();
    for (let record = await log.next(); record !== null; record = await log.next()) {
      if (record.ns !== ns) continue;
      const checkpoint = checkpointEntryId(ns, record.id);
      if (ns === "" && this.#at?.checkpoint !== checkpoint) this.#at = { checkpoint, tail: log.lastNode ?? checkpoint };
      return { record, log };
    }
    return null;
  }

  /** The values of all channels at a checkpoint. */
  async values(log: ThreadLog, record: CheckpointRecord): Promise<Record<string, unknown>> {
    const values: Record<string, unknown> = {};
    for (const [channel, { json, messages }] of await this.#channelsAt(log, record)) {
      // A node that changes its state in place must not change what others are given later.
      values[channel] = messages === null ? await this.decode(log, json) : messages.slice();
    }
    return values;
  }

  /** A value from its JSON, with the messages that it refers to. */
  async decode(log: ThreadLog, json: JsonValue): Promise<unknown> {
    const messages = await this.#messagesOf(log, turnsIn(json));
    return this.#values.decode(json, (turn) => messages.get(turn));
  }

  /** Stores a checkpoint: what changed of it since its parent. */
  put(
    ns: string,
    parent: string | null,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    changedChannels: readonly string[],
  ): Promise<void> {
    return this.#inTurn(async () => {
      const entryId = checkpointEntryId(ns, checkpoint.id);
      const parentEntry = parent === null ? null : checkpointEntryId(ns, parent);
      const before = parentEntry === null ? new Map() : this.#channels.get(parentEntry);
      const channels = new Map<string, ChannelValue>(before);
      const turns = noTurns();
      // Messages that tasks returned were compared when that was written; a run may also write nothing before its end.
      const written = parentEntry !== null && this.#written.get(parentEntry) !== undefined;
      const changed: Record<string, ChannelChange> = {};
      for (const name of changedChannels) {
        changed[name] = null;
        channels.delete(name);
        if (!(name in checkpoint.channel_values)) continue;
        const encoded = await this.#values.encodeChannel(
          checkpoint.channel_values[name],
          before?.get(name),
          turns,
          !written,
        );
        changed[name] = encoded.change;
        channels.set(name, encoded.channel);
      }
      const early = this.#early.get(entryId);
      const record: CheckpointRecord = {
        ns,
        id: checkpoint.id,
        parent,
        v: checkpoint.v,
        ts: checkpoint.ts,
        versions: checkpoint.channel_versions,
        seen: checkpoint.versions_seen,
        metadata: await this.#values.encode(metadata, turns, false),
        changed,
        ...(early === undefined ? {} : { early }),
      };
      const draft: EntryDraft = { type: "custom", customType: CHECKPOINT, id: entryId, data: asData(record) };
      if (ns !== "") await this.#openNamespace(ns);
      const head = await this.#append(ns, parentEntry, turns, draft);
      if (before !== undefined) this.#channels.set(entryId, channels);
      if (ns !== "") return;
      this.#at = { checkpoint: entryId, tail: entryId };
      if (head.leafId !== entryId) await this.#store.append(this.sessionId, [{ type: "leaf", targetId: entryId }]);
    });
  }

  /** Stores what a task wrote to a checkpoint. */
  putWrites(
    ns: string,
    checkpointId: string,
    writes: readonly (readonly [string, number, unknown])[],
    task: string,
  ): Promise<void> {
    return this.#inTurn(async () => {
      const turns = noTurns();
      const encoded: [string, number, JsonValue][] = [];
      for (const [channel, index, value] of writes) {
        encoded.push([channel, index, await this.#values.encode(value, turns, true)]);
      }
      const data = asData({ ns, checkpoint: checkpointId, task, writes: encoded });
      const draft: EntryDraft & { readonly id: string } = { type: "custom", customType: WRITES, id: uuidv7(), data };
      const checkpoint = checkpointEntryId(ns, checkpointId);
      const stored = this.#channels.get(checkpoint) !== undefined;
      const known = stored || (await this.#store.getEntry(this.sessionId, checkpoint)) !== null;
      await this.#append(ns, known ? checkpoint : null, turns, draft);
      this.#written.set(checkpoint, true);
      // The graph does not wait for a checkpoint to be stored before it stores what is written to it.
      if (!known && this.#early.get(checkpoint) === undefined) this.#early.set(checkpoint, draft.id);
    });
  }

  /** The messages of turns, from memory or from the log. */
  async #messagesOf(log: ThreadLog, turns: ReadonlySet<string>): Promise<Map<string, unknown>> {
    const missing = new Set([...turns].filter((turn) => this.#values.messageOf(turn) === undefined));
    const revived = missing.size === 0 ? new Map() : await this.#values.revive(await log.turns(missing));
    return new Map([...turns].map((turn) => [turn, revived.get(turn) ?? this.#values.messageOf(turn)]));
  }

  /** Goes up the parents until every channel is known, and down again with what each changed. */
  async #channelsAt(log: ThreadLog, record: CheckpointRecord): Promise<Channels> {
    const known = this.#channels.get(checkpointEntryId(record.ns, record.id));
    if (known !== undefined && !this.#values.edited) return known;
    const steps: CheckpointRecord[] = [];
    const unknown = new Set(Object.keys(record.versions));
    let channels: Map<string, ChannelValue> = new Map();
    for (let at: CheckpointRecord | null = record; at !== null; ) {
      const remembered = this.#channels.get(checkpointEntryId(at.ns, at.id));
      if (remembered !== undefined) {
        channels = new Map([...remembered].map(([name, channel]) => [name, copyOf(channel)]));
        break;
      }
      steps.push(at);
      for (const [name, change] of Object.entries(at.changed)) {
        if (change === null || "value" in change) unknown.delete(name);
      }
      if (unknown.size === 0 || at.parent === null) break;
      at = await log.checkpoint(checkpointEntryId(at.ns, at.parent));
    }
    for (const { changed } of steps.reverse()) applyChanges(channels, changed);
    for (const [name, channel] of channels) channels.set(name, await this.#withMessages(log, channel));
    this.#channels.set(checkpointEntryId(record.ns, record.id), channels);
    return channels;
  }

  /** The channel with its messages, where it is a list of nothing else. */
  async #withMessages(log: ThreadLog, { json, messages, depth }: ChannelValue): Promise<ChannelValue> {
    if (!Array.isArray(json) || json.length === 0 || !json.every(isTurn)) return { json, messages: null, depth };
    // What a node changed in place since then is read again.
    const known = json.map((turn, index) => {
      const message = messages?.[index];
      return message !== undefined && this.#values.isAsStored(message, turn, false) ? message : undefined;
    });
    const missing = json.filter((_, index) => known[index] === undefined).map(turnIn);
    const found = missing.length === 0 ? new Map() : await this.#messagesOf(log, new Set(missing));
    return { json, messages: json.map((turn, index) => known[index] ?? found.get(turnIn(turn))), depth };
  }

  async #hasNamespace(ns: string): Promise<boolean> {
    if (this.#namespaces.get(ns)) return true;
    if ((await this.#store.getEntry(this.sessionId, namespaceEntryId(ns))) === null) return false;
    this.#namespaces.set(ns, true);
    return true;
  }

  /** Says that a sub-graph has checkpoints: without that, looking for one that has none would read the whole log. */
  async #openNamespace(ns: string): Promise<void> {
    if (await this.#hasNamespace(ns)) return;
    const draft: EntryDraft = { type: "custom", customType: NAMESPACE, id: namespaceEntryId(ns), data: ns };
    await this.#append(ns, null, noTurns(), draft);
    this.#namespaces.set(ns, true);
  }

  /**
   * Appends turns and what refers to them. What belongs to the checkpoint that this process is at goes on from its last
   * entry; what belongs to another checkpoint of the outermost graph begins a branch there.
   */
  async #append(ns: string, checkpoint: string | null, turns: NewTurns, draft: EntryDraft): Promise<SessionHead> {
    const moves = ns === "" && checkpoint !== null && checkpoint !== this.#at?.checkpoint;
    let onto = moves ? checkpoint : this.#at?.tail;
    const header = { id: this.sessionId, metadata: { langgraphThread: this.#threadId } };
    const drafts = [...turns.drafts, draft];
    for (let from = 0; ; from += APPEND_ENTRIES_MAX) {
      const part = drafts.slice(from, from + APPEND_ENTRIES_MAX);
      const { head, entries } = await appendToSession(this.#store, header, part, onto === undefined ? {} : { onto });
      onto = entries[entries.length - 1]?.id as string;
      if (from + APPEND_ENTRIES_MAX < drafts.length) continue;
      this.#values.remember(turns);
      const at = moves ? checkpoint : this.#at?.checkpoint;
      if (at !== undefined) this.#at = { checkpoint: at, tail: onto };
      return head;
    }
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }
}

/** Changes lists in place: a long thread has many splices, and copying a list for each would cost its length squared. */
function applyChanges(channels: Map<string, ChannelValue>, changed: CheckpointRecord["changed"]): void {
  for (const [name, change] of Object.entries(changed)) {
    const before = channels.get(name);
    if (change === null) channels.delete(name);
    else if ("value" in change) channels.set(name, { json: change.value, messages: null, depth: 0 });
    else if (before !== undefined) {
      const json = (Object.isFrozen(before.json) ? [...(before.json as JsonValue[])] : before.json) as JsonValue[];
      const messages = before.messages as unknown[] | null;
      splice(json, change, change.items);
      if (messages !== null)
        splice(
          messages,
          change,
          change.items.map(() => undefined),
        );
      channels.set(name, { json, messages, depth: change.depth });
    }
  }
}

function copyOf({ json, messages, depth }: ChannelValue): ChannelValue {
  return { json: Array.isArray(json) ? json.slice() : json, messages: messages?.slice() ?? null, depth };
}
