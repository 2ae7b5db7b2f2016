import type { BaseMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type JsonValue, sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { CHECKPOINT, type ChannelChange, type CheckpointRecord, dataOf } from "./checkpoint-record.ts";
import { constructed, digestOf, isTurnMessage, type SerializedMessage, serializedOf, turnOf } from "./message-turn.ts";

const CHANNELS_REMEMBERED = 128;
const WEIGHTS = { max: 100_000, of: ({ items }: Channel) => items.length };
/** How many of the changes that a list was made of are remembered, as whoever lists checkpoints asks for the one before next. */
const CHANGES_REMEMBERED = 8;

/** Gives an entry of the thread's log. */
export type ReadEntry = (entryId: string) => Promise<Entry | null>;

/** Stands in JSON for the message that a turn keeps. */
type Reference = { readonly skein_turn: string };

/** A channel at a checkpoint: messages, and what else it has as JSON. */
interface Channel {
  readonly items: readonly unknown[];
  readonly list: boolean;
  readonly depth: number;
  /** Whether it is a list of nothing but messages. */
  readonly messages: boolean;
}

const NOTHING: Channel = { items: [], list: true, depth: 0, messages: true };

/**
 * Turns the values of one thread into JSON and back. A message is stored once, as a turn; wherever it stands, the JSON has a
 * reference. A message is the same one while it is the same object and says the same.
 */
export class ThreadValues {
  readonly #serde: SerializerProtocol;
  /** By the entry that keeps it. */
  readonly #messages = new Map<string, BaseMessage>();
  /** What the log has of a message. */
  readonly #turns = new Map<unknown, { readonly id: string; readonly content: unknown; readonly digest: string }>();
  /** By the entry that changed the channel, and its name. */
  #channels = new LruCache<string, Channel>(CHANNELS_REMEMBERED, WEIGHTS);

  constructor(serde: SerializerProtocol) {
    this.#serde = serde;
  }

  /** A value as JSON. Messages that no turn keeps as they are become turns among the drafts. */
  async encode(value: unknown, drafts: EntryDraft[]): Promise<JsonValue> {
    const messages: BaseMessage[] = [];
    replaceIn(value, isTurnMessage, (message) => messages.push(message));
    // The reducer of a messages channel would give the same object an id later.
    for (const message of messages) if (message.id == null) message.id = message.lc_kwargs["id"] = uuidv7();
    const texts = (await this.#dump(messages)) as unknown as readonly SerializedMessage[];
    for (const [index, text] of texts.entries()) {
      const message = messages[index] as BaseMessage;
      const before = this.#turns.get(message);
      if (before?.digest === digestOf(text)) continue;
      if (before !== undefined) {
        // It was changed in place: the entry says what it said before, and so do the lists that had it.
        this.#messages.delete(before.id);
        this.#channels = new LruCache(CHANNELS_REMEMBERED, WEIGHTS);
      }
      const id = uuidv7();
      this.#hold(id, message, text);
      drafts.push({ type: "message", id, message: turnOf(message, text) });
    }
    return this.#dump(this.#withReferences(value));
  }

  /** A value from its JSON. */
  async decode(json: JsonValue, read: ReadEntry): Promise<unknown> {
    await this.#fill(json, read);
    return this.#withMessages(await this.#load(json));
  }

  /** What a channel has since an entry changed it. */
  async channel(entryId: string, name: string, read: ReadEntry): Promise<unknown> {
    const { items, list, messages } = await this.#channel(entryId, name, read);
    if (messages) return items.slice();
    // A message that was erased is gone.
    const kept = items.filter((item) => !(list && isReference(item)));
    const values = (await this.decode(this.#withReferences(kept) as JsonValue, read)) as unknown[];
    return list ? values : values[0];
  }

  /**
   * What an entry changes about a channel that the entry `on` changed before. `written` says that what the tasks returned was
   * encoded before; else a message that was changed in place shows by its content.
   */
  async change(
    { entryId, name, on, written }: { entryId: string; name: string; on: string | null; written: boolean },
    value: unknown,
    drafts: EntryDraft[],
    read: ReadEntry,
  ): Promise<ChannelChange> {
    const list = Array.isArray(value);
    const items: unknown[] = list ? value.slice() : [value];
    const known = on === null ? NOTHING : await this.#channel(on, name, read);
    // Whole once it is made of more changes than it has items, so that reading it costs no more than its length.
    const base = known.list && list && known.depth < items.length ? known : NOTHING;
    const same = commonEnds(base.items, items, (left, right) => left === right && (written || !this.#isEdited(right)));
    const before = this.#withReferences(base.items.slice(same.start, base.items.length - same.end)) as JsonValue[];
    const after = (await this.encode(items.slice(same.start, items.length - same.end), drafts)) as JsonValue[];
    const equal = commonEnds(before, after, sameJson);
    for (const [index, item] of after.entries()) items[same.start + index] = this.#withMessages(item);
    const depth = base.depth + 1;
    const messages = list && base.messages && after.every(isReference);
    this.#channels.set(`${entryId} ${name}`, { items, list, depth, messages });
    const added = after.slice(equal.start, after.length - equal.end);
    const where = { start: same.start + equal.start, end: same.end + equal.end };
    return { on: base === NOTHING ? null : on, depth, list, ...where, items: added };
  }

  async #channel(entryId: string, name: string, read: ReadEntry): Promise<Channel> {
    const changes: (readonly [key: string, change: ChannelChange])[] = [];
    let channel: Channel | undefined;
    for (let at: string | null = entryId; at !== null; ) {
      const key = `${at} ${name}`;
      channel = this.#channels.get(key);
      const record: CheckpointRecord | null = channel === undefined ? dataOf(await read(at), CHECKPOINT) : null;
      const change: ChannelChange | undefined = record?.changed[name];
      if (change !== undefined) changes.push([key, change]);
      at = change?.on ?? null;
    }
    channel ??= NOTHING;
    const items = channel.items.slice();
    for (const [index, [key, { list, depth, start, end, items: added }]] of changes.reverse().entries()) {
      const after = items.splice(items.length - end);
      items.length = start;
      await this.#fill(added, read);
      for (const item of added) items.push(this.#withMessages(item));
      for (const item of after) items.push(item);
      if (index < changes.length - CHANGES_REMEMBERED) continue;
      channel = { items: items.slice(), list, depth, messages: list && items.every(isTurnMessage) };
      this.#channels.set(key, channel);
    }
    return channel;
  }

  /** Whether a message is not what its turn says, as far as that can be seen without writing it as JSON. */
  #isEdited(value: unknown): boolean {
    const turn = this.#turns.get(value);
    return turn !== undefined && turn.content !== (value as BaseMessage).content;
  }

  #withReferences(value: unknown): unknown {
    return replaceIn(value, isTurnMessage, (message) => ({ skein_turn: this.#turns.get(message)?.id }));
  }

  /** What is erased keeps its reference. */
  #withMessages(value: unknown): unknown {
    return replaceIn(value, isReference, (reference) => this.#messages.get(reference.skein_turn) ?? reference);
  }

  /** Reads the messages that some JSON refers to and that are not in memory. */
  async #fill(json: JsonValue, read: ReadEntry): Promise<void> {
    const missing: string[] = [];
    replaceIn(json, isReference, ({ skein_turn: id }) => this.#messages.has(id) || missing.push(id));
    for (const id of missing) {
      const entry = await read(id);
      const text = entry?.type === "message" ? serializedOf(entry.message) : null;
      if (text !== null) this.#hold(id, constructed(text) ?? ((await this.#load(text)) as BaseMessage), text);
    }
  }

  #hold(id: string, message: BaseMessage, text: SerializedMessage): void {
    this.#messages.set(id, message);
    this.#turns.set(message, { id, content: message.content, digest: digestOf(text) });
  }

  async #dump(value: unknown): Promise<JsonValue> {
    // In a list, as bytes alone would not become JSON.
    const [, bytes] = await this.#serde.dumpsTyped([value]);
    return JSON.parse(new TextDecoder().decode(bytes))[0];
  }

  async #load(json: unknown): Promise<unknown> {
    return (await this.#serde.loadsTyped("json", JSON.stringify([json])))[0];
  }
}

function isReference(value: unknown): value is Reference {
  return typeof value === "object" && value !== null && "skein_turn" in value;
}

/** How many items two lists have in common at their beginning, and how many of the others at their end. */
function commonEnds<T>(left: readonly T[], right: readonly T[], same: (left: T, right: T) => boolean) {
  const most = Math.min(left.length, right.length);
  let start = 0;
  while (start < most && same(left[start] as T, right[start] as T)) start++;
  let end = 0;
  while (start + end < most && same(left[left.length - 1 - end] as T, right[right.length - 1 - end] as T)) end++;
  return { start, end };
}

/** A copy of a value with some objects replaced, at any depth of lists, plain objects, sends and snapshots. */
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
