import type { BaseMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type JsonValue, sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import {
  CHECKPOINT,
  type ChannelChange,
  type CheckpointRecord,
  dataOf,
  type ChannelEntries,
} from "./checkpoint-record.ts";
import { constructed, digestOf, isTurnMessage, type SerializedMessage, serializedOf, turnOf } from "./message-turn.ts";

const CHANNELS_REMEMBERED = 256;
const WEIGHTS = { max: 100_000, of: ({ items }: Channel) => items.length };

/** Reads an entry of the thread's log by its id. */
export type ReadEntry = (entryId: string) => Promise<Entry | null>;

/** The value of a channel after an entry: messages as objects, other items as JSON. A single value is a list of one item. */
interface Channel {
  readonly items: readonly unknown[];
  readonly list: boolean;
  /** Whether it is a list of messages only. */
  readonly messages: boolean;
}

/**
 * Converts the values of one thread to JSON and back. Each message is stored once, as a turn, and the JSON refers to it. A
 * message counts as the same as long as it is the same object with the same content.
 */
export class ThreadValues {
  readonly #serde: SerializerProtocol;
  /** By the id of the turn that stores it. */
  readonly #messages = new Map<string, BaseMessage>();
  readonly #turns = new Map<BaseMessage, { readonly id: string; readonly digest: string }>();
  /** By the id of the entry that changed it, and its name. */
  #channels = new LruCache<string, Channel>(CHANNELS_REMEMBERED, WEIGHTS);

  constructor(serde: SerializerProtocol) {
    this.#serde = serde;
  }

  /** Encodes a value as JSON. Messages that are new or changed are added to the drafts as turns. */
  async encode(value: unknown, drafts: EntryDraft[]): Promise<JsonValue> {
    const messages: BaseMessage[] = [];
    replaceIn(value, isTurnMessage, (message) => messages.push(message));
    // Assign the id now: the reducer of a messages channel would otherwise assign one to the same object later.
    for (const message of messages) if (message.id == null) message.id = message.lc_kwargs["id"] = uuidv7();
    const texts = (await this.#dump(messages)) as unknown as readonly SerializedMessage[];
    for (const [index, text] of texts.entries()) {
      const message = messages[index] as BaseMessage;
      const before = this.#turns.get(message);
      if (before?.digest === digestOf(text)) continue;
      if (before !== undefined) {
        // It was changed in place: drop caches that hold the object, so that the old content is read from the log.
        this.#messages.delete(before.id);
        this.#channels = new LruCache(CHANNELS_REMEMBERED, WEIGHTS);
      }
      const id = uuidv7();
      this.#hold(id, message, text);
      drafts.push({ type: "message", id, message: turnOf(message, text) });
    }
    return this.#dump(this.#withReferences(value));
  }

  /** Decodes a value from its JSON. */
  async decode(json: JsonValue, read: ReadEntry): Promise<unknown> {
    return this.#withMessages(await this.#load(json), read);
  }

  /** The values of channels, by the entries that changed them last. */
  async values(channelEntries: ChannelEntries, read: ReadEntry): Promise<Record<string, unknown>> {
    const values: Record<string, unknown> = {};
    for (const [name, at] of Object.entries(channelEntries)) {
      const { items, list, messages } = await this.#channel(name, at, read);
      // An erased message stays a reference, and is omitted.
      const kept = messages || !list ? items.slice() : items.filter((item) => !isReference(item));
      // Callers may change the values that they get, so all values except messages are copied.
      const copy = messages ? kept : await this.decode(this.#withReferences(kept) as JsonValue, read);
      const given = copy as unknown[];
      if (list || given.length > 0) values[name] = list ? given : given[0];
    }
    return values;
  }

  /**
   * The change of a channel that the entry `at` changed last; `at` itself if the value is the same. `written`: the values of
   * the tasks were encoded before, so that a message that is the same object has the same content.
   */
  async change(
    { entryId, name, at, written }: { entryId: string; name: string; at: string | null; written: boolean },
    value: unknown,
    drafts: EntryDraft[],
    read: ReadEntry,
  ): Promise<ChannelChange | string> {
    const list = Array.isArray(value);
    const items: unknown[] = list ? value.slice() : [value];
    const known = at === null ? null : await this.#channel(name, at, read);
    const before = known?.list === list ? known : { items: [], messages: list };
    // Captured before `encode`, which replaces the cache if a message was changed in place: this channel is then not cached.
    const channels = this.#channels;
    let start = 0;
    while (written && start < before.items.length && before.items[start] === items[start]) start++;
    const left = this.#withReferences(before.items.slice(start)) as JsonValue[];
    const encoded = (await this.encode(items.slice(start), drafts)) as JsonValue[];
    const grown = at !== null && before === known && left.every((item, index) => sameJson(item, encoded[index]));
    if (grown && encoded.length === left.length) return at;
    const live = (await this.#withMessages(encoded, read)) as unknown[];
    for (const [index, item] of live.entries()) items[start + index] = item;
    channels.set(`${entryId} ${name}`, { items, list, messages: before.messages && encoded.every(isReference) });
    // Every chained change adds at least one item, so that a chain of changes is never longer than the channel.
    if (grown) return { after: at, list, items: encoded.slice(left.length) };
    return { after: null, list, items: this.#withReferences(items) as JsonValue[] };
  }

  /** The value of a channel after an entry. Reads back only to a cached value or to a change that holds all items. */
  async #channel(name: string, entryId: string, read: ReadEntry): Promise<Channel> {
    const changes: ChannelChange[] = [];
    let above: Channel | undefined;
    for (let at: string | null = entryId; at !== null; ) {
      above = this.#channels.get(`${at} ${name}`);
      const record: CheckpointRecord | null = above === undefined ? dataOf(await read(at), CHECKPOINT) : null;
      const change: ChannelChange | string | undefined = record?.channels[name];
      if (typeof change !== "object") break;
      changes.push(change);
      at = change.after;
    }
    if (above !== undefined && changes.length === 0) return above;
    const json = [...(above?.items ?? []), ...changes.reverse().flatMap((change) => change.items)];
    const items = (await this.#withMessages(json, read)) as unknown[];
    const list = changes[0]?.list ?? false;
    const channel = { items, list, messages: list && items.every(isTurnMessage) };
    this.#channels.set(`${entryId} ${name}`, channel);
    return channel;
  }

  #withReferences(value: unknown): unknown {
    return replaceIn(value, isTurnMessage, (message) => ({ skein_turn: this.#turns.get(message)?.id }));
  }

  /** Replaces references by their messages, reading those that are not cached. An erased message stays a reference. */
  async #withMessages(json: unknown, read: ReadEntry): Promise<unknown> {
    const missing = new Set<string>();
    replaceIn(json, isReference, ({ skein_turn: id }) => this.#messages.has(id) || missing.add(id));
    // Newest first, because the log is read backward.
    for (const id of [...missing].reverse()) {
      const entry = await read(id);
      const text = entry?.type === "message" ? serializedOf(entry.message) : null;
      if (text !== null) this.#hold(id, constructed(text) ?? ((await this.#load(text)) as BaseMessage), text);
    }
    return replaceIn(json, isReference, (reference) => this.#messages.get(reference.skein_turn) ?? reference);
  }

  #hold(id: string, message: BaseMessage, text: SerializedMessage): void {
    this.#messages.set(id, message);
    this.#turns.set(message, { id, digest: digestOf(text) });
  }

  async #dump(value: unknown): Promise<JsonValue> {
    // Wrapped in a list: the serializer would not encode a bare byte array as JSON.
    const [, bytes] = await this.#serde.dumpsTyped([value]);
    return JSON.parse(new TextDecoder().decode(bytes))[0];
  }

  async #load(json: unknown): Promise<unknown> {
    return (await this.#serde.loadsTyped("json", JSON.stringify([json])))[0];
  }
}

/** Whether a JSON value is a reference to the turn that stores a message. */
function isReference(value: unknown): value is { readonly skein_turn: string } {
  return typeof value === "object" && value !== null && "skein_turn" in value;
}

/** A deep copy of a value with the wanted objects replaced. Descends into lists, plain objects, sends and snapshots. */
function replaceIn<T>(value: unknown, wanted: (value: unknown) => value is T, instead: (value: T) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (wanted(value)) return instead(value);
  if (Array.isArray(value)) return value.map((item) => replaceIn(item, wanted, instead));
  const prototype: unknown = Object.getPrototypeOf(value);
  const special = "lg_name" in value && (value.lg_name === "Send" || value.lg_name === "DeltaSnapshot");
  if (prototype !== Object.prototype && prototype !== null && !special) return value;
  const copy = Object.create(prototype as object | null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value)) copy[key] = replaceIn(item, wanted, instead);
  return copy;
}
