import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { CHECKPOINT, type ChannelChange, type CheckpointRecord, dataOf } from "./checkpoint-record.ts";
import { isTurnMessage, type SerializedMessage, serializedOf, turnOf } from "./message-turn.ts";

const CHANNELS_REMEMBERED = 128;
const ITEMS_REMEMBERED = 100_000;
/** How many of the changes that a list was made of are remembered, as whoever lists checkpoints asks for the one before next. */
const CHANGES_REMEMBERED = 8;

/** Gives an entry of the thread's log. */
export type ReadEntry = (entryId: string) => Promise<Entry | null>;

/** Stands in a value for the message that a turn keeps. */
type Reference = { readonly skein_turn: string };

/** A message of the thread, and the entry that keeps it. */
class Turn {
  readonly reference: Reference;
  /** Null until it is read, and once it was changed in place: the entry says what it said before. */
  message: BaseMessage | null = null;
  content: unknown;
  digest = "";

  constructor(reference: Reference) {
    this.reference = reference;
  }
}

/** A channel at a checkpoint. Its items are JSON, and turns. */
interface Channel {
  readonly items: readonly (JsonValue | Turn)[];
  readonly list: boolean;
  readonly depth: number;
}

/**
 * Turns the values of one thread into JSON and back. A message is stored once, as a turn; wherever it stands, the JSON has a
 * reference. A message is the same one while it is the same object and says the same.
 */
export class ThreadValues {
  readonly #serde: SerializerProtocol;
  readonly #turns = new Map<string, Turn>();
  readonly #turnOf = new WeakMap<BaseMessage, Turn>();
  /** By the entry that changed the channel, and its name. */
  readonly #channels = new LruCache<string, Channel>(CHANNELS_REMEMBERED, {
    max: ITEMS_REMEMBERED,
    of: ({ items }) => items.length,
  });

  /** The lists of nothing but messages, until one is changed in place: looking at every turn of a long one takes long. */
  #lists = new WeakMap<Channel, readonly unknown[]>();

  constructor(serde: SerializerProtocol) {
    this.#serde = serde;
  }

  /** A value as JSON. Messages that no turn keeps as they are become turns among the drafts. */
  async encode(value: unknown, drafts: EntryDraft[]): Promise<JsonValue> {
    const messages = new Set<BaseMessage>();
    replaceIn(value, isTurnMessage, (message) => messages.add(message));
    // The reducer of a messages channel would give the same object an id later.
    for (const message of messages) if (message.id == null) message.id = message.lc_kwargs["id"] = uuidv7();
    const texts = (await this.#dump([...messages])) as unknown as readonly SerializedMessage[];
    for (const [index, message] of [...messages].entries()) {
      const text = texts[index] as SerializedMessage;
      const before = this.#turnOf.get(message);
      if (before?.digest === digestOf(text)) continue;
      if (before !== undefined) {
        before.message = null;
        this.#lists = new WeakMap();
      }
      const id = uuidv7();
      this.#hold(this.#turn({ skein_turn: id }), message, text);
      drafts.push({ type: "message", id, message: turnOf(message, text) });
    }
    return this.#dump(replaceIn(value, isTurnMessage, (message) => this.#turnOf.get(message)?.reference));
  }

  /** A value from its JSON. */
  async decode(json: JsonValue, read: ReadEntry): Promise<unknown> {
    const value = await this.#load(json);
    const turns = new Set<Turn>();
    replaceIn(value, isReference, (reference) => turns.add(this.#turn(reference)));
    await this.#fill(turns, read);
    return replaceIn(value, isReference, (reference) => this.#turn(reference).message);
  }

  /** What a channel has since an entry changed it. */
  async channel(entryId: string, name: string, read: ReadEntry): Promise<unknown> {
    const channel = await this.#channel(entryId, name, read);
    const { items, list } = channel;
    const known = this.#lists.get(channel);
    if (known !== undefined) return known.slice();
    if (list && items.every((item) => item instanceof Turn)) {
      await this.#fill(items, read);
      // A message that was erased is gone.
      const messages = items.map(({ message }) => message).filter((message) => message !== null);
      if (messages.length === items.length) this.#lists.set(channel, messages);
      return messages.slice();
    }
    const values = await this.decode(
      items.map((item) => (item instanceof Turn ? item.reference : item)),
      read,
    );
    return list ? values : (values as unknown[])[0];
  }

  /** What an entry changes about a channel that the entry `on` changed before; `compared` says that all messages were written. */
  async change(
    { entryId, name, on, compared }: { entryId: string; name: string; on: string | null; compared: boolean },
    value: unknown,
    drafts: EntryDraft[],
    read: ReadEntry,
  ): Promise<ChannelChange> {
    const list = Array.isArray(value);
    const after: readonly unknown[] = list ? value : [value];
    const known = on === null ? null : await this.#channel(on, name, read);
    // Whole once it is made of more changes than it has items, so that reading it costs no more than its length.
    const base = known?.list && list && known.depth < after.length ? known : null;
    const before = base?.items ?? [];
    const messages = base === null ? [] : this.#lists.get(base);
    const same =
      compared && messages !== undefined
        ? commonEnds(messages, after, Object.is)
        : commonEnds(before, after, (item, other) => isUnchanged(item, other, compared));
    const part = before.slice(same.start, before.length - same.end);
    const encoded = (await this.encode(after.slice(same.start, after.length - same.end), drafts)) as JsonValue[];
    const equal = commonEnds(part, this.#items(encoded), isEqual);
    const start = same.start + equal.start;
    const removed = part.length - equal.start - equal.end;
    const items = encoded.slice(equal.start, encoded.length - equal.end);
    const depth = (base?.depth ?? 0) + 1;
    const added = this.#items(items);
    const channel = { items: before.slice(), list, depth };
    splice(channel.items, start, removed, added);
    this.#channels.set(`${entryId} ${name}`, channel);
    if (list && messages !== undefined && added.every((item) => item instanceof Turn))
      this.#lists.set(channel, after.slice());
    return { on: base === null ? null : on, depth, list, start, removed, items };
  }

  async #channel(entryId: string, name: string, read: ReadEntry): Promise<Channel> {
    const changes: (readonly [key: string, change: ChannelChange])[] = [];
    let channel: Channel = { items: [], list: false, depth: 0 };
    for (let at: string | null = entryId; at !== null; ) {
      const key = `${at} ${name}`;
      const known = this.#channels.get(key);
      if (known !== undefined) {
        channel = known;
        break;
      }
      const record: CheckpointRecord | null = dataOf(await read(at), CHECKPOINT);
      const change: ChannelChange | undefined = record?.changed[name];
      if (change === undefined) break;
      changes.push([key, change]);
      at = change.on;
    }
    if (changes.length === 0) return channel;
    const items = channel.items.slice();
    for (let left = changes.length; left > 0; left--) {
      const [key, { start, removed, items: added, list, depth }] = changes[left - 1] as (typeof changes)[0];
      splice(items, start, removed, this.#items(added));
      if (left > CHANGES_REMEMBERED) continue;
      channel = { items: items.slice(), list, depth };
      this.#channels.set(key, channel);
    }
    return channel;
  }

  /** The items of a list with the one object of each turn instead of its reference. */
  #items(list: readonly JsonValue[]): (JsonValue | Turn)[] {
    return list.map((item) => (isReference(item) ? this.#turn(item) : item));
  }

  #turn(reference: Reference): Turn {
    const turn = this.#turns.get(reference.skein_turn) ?? new Turn(reference);
    this.#turns.set(reference.skein_turn, turn);
    return turn;
  }

  #hold(turn: Turn, message: BaseMessage, text: SerializedMessage): void {
    Object.assign(turn, { message, content: message.content, digest: digestOf(text) });
    this.#turnOf.set(message, turn);
  }

  /** Reads the messages that are not in memory. */
  async #fill(turns: Iterable<Turn>, read: ReadEntry): Promise<void> {
    for (const turn of turns) {
      if (turn.message !== null) continue;
      const entry = await read(turn.reference.skein_turn);
      const text = entry?.type === "message" ? serializedOf(entry.message) : null;
      if (text !== null) this.#hold(turn, constructed(text) ?? ((await this.#load(text)) as BaseMessage), text);
    }
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

const MESSAGE_CLASSES = { AIMessage, HumanMessage, SystemMessage, ToolMessage };

/** A message of LangChain's own classes, which its loader takes many times longer for; null for one of others. */
function constructed({ id, kwargs }: SerializedMessage): BaseMessage | null {
  const name = id[id.length - 1] ?? "";
  const text = JSON.stringify(kwargs);
  if (id[0] !== "langchain_core" || !Object.hasOwn(MESSAGE_CLASSES, name) || text.includes('"lc":')) return null;
  return new MESSAGE_CLASSES[name as keyof typeof MESSAGE_CLASSES](JSON.parse(text));
}

/** Of what a message says: a constructor may add empty fields to what was stored, in another order. */
function digestOf({ kwargs }: SerializedMessage): string {
  const filled = Object.entries(kwargs).filter(([, value]) => value !== null && JSON.stringify(value).length > 2);
  return createHash("sha256").update(JSON.stringify(filled.sort())).digest("base64");
}

function isReference(value: unknown): value is Reference {
  return typeof value === "object" && value !== null && "skein_turn" in value;
}

/** Whether a value is the message of a turn, and says the same as far as that can be seen without writing it as JSON. */
function isUnchanged(item: JsonValue | Turn, value: unknown, compared: boolean): boolean {
  if (!(item instanceof Turn) || item.message === null || item.message !== value) return false;
  return compared || item.message.content === item.content;
}

function isEqual(left: JsonValue | Turn, right: JsonValue | Turn): boolean {
  return left === right || (!(left instanceof Turn) && sameJson(left, right));
}

/** How many items two lists have in common at their beginning, and how many of the others at their end. */
function commonEnds<A, B>(left: readonly A[], right: readonly B[], same: (left: A, right: B) => boolean) {
  const most = Math.min(left.length, right.length);
  let start = 0;
  while (start < most && same(left[start] as A, right[start] as B)) start++;
  let end = 0;
  while (start + end < most && same(left[left.length - 1 - end] as A, right[right.length - 1 - end] as B)) end++;
  return { start, end };
}

/** In place, as a long thread has many changes; not by spreading, as a list may be longer than the arguments of a call. */
function splice<T>(list: T[], start: number, removed: number, items: readonly T[]): void {
  const after = list.splice(start).slice(removed);
  for (const item of items) list.push(item);
  for (const item of after) list.push(item);
}

/** A copy of a value with some objects replaced, at any depth of lists, plain objects, sends and snapshots. */
function replaceIn<T extends object>(
  value: unknown,
  wanted: (value: object) => value is T,
  instead: (value: T) => unknown,
): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (wanted(value)) return instead(value);
  if (Array.isArray(value)) return value.map((item) => replaceIn(item, wanted, instead));
  const prototype: unknown = Object.getPrototypeOf(value);
  const special = "lg_name" in value && (value.lg_name === "Send" || value.lg_name === "DeltaSnapshot");
  if (prototype !== Object.prototype && prototype !== null && !special) return value;
  const copy = Object.create(prototype as object | null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value as JsonObject)) copy[key] = replaceIn(item, wanted, instead);
  return copy;
}
