import type { BaseMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type JsonValue, sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { CHECKPOINT, type ChannelChange, type CheckpointRecord, dataOf, entryIdOf } from "./checkpoint-record.ts";
import { constructed, digestOf, isTurnMessage, type SerializedMessage, serializedOf, turnOf } from "./message-turn.ts";

const STATES_REMEMBERED = 64;
const WEIGHTS = {
  max: 100_000,
  of: (state: State) => [...state.values()].reduce((sum, { items }) => sum + items.length, 0),
};

/** Gives an entry of the thread's log. */
export type ReadEntry = (entryId: string) => Promise<Entry | null>;

/** Stands in JSON for the message that a turn keeps. */
type Reference = { readonly skein_turn: string };

/** A channel at a checkpoint: messages, and what else it has as JSON. One value is a list of one item. */
interface Channel {
  readonly items: readonly unknown[];
  readonly list: boolean;
  /** Whether it is a list of nothing but messages. */
  readonly messages: boolean;
}

/** The channels at a checkpoint. */
type State = ReadonlyMap<string, Channel>;

/**
 * Turns the values of one thread into JSON and back. A message is stored once, as a turn; wherever it stands, the JSON has a
 * reference. A message is the same one while it is the same object and says the same.
 */
export class ThreadValues {
  readonly #serde: SerializerProtocol;
  /** By the entry that keeps it. */
  readonly #messages = new Map<string, BaseMessage>();
  readonly #turns = new Map<BaseMessage, { readonly id: string; readonly digest: string }>();
  /** By the entry of the checkpoint. */
  #states = new LruCache<string, State>(STATES_REMEMBERED, WEIGHTS);

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
        // It was changed in place: what had it is read again, as the log has what it said.
        this.#messages.delete(before.id);
        this.#states = new LruCache(STATES_REMEMBERED, WEIGHTS);
      }
      const id = uuidv7();
      this.#hold(id, message, text);
      drafts.push({ type: "message", id, message: turnOf(message, text) });
    }
    return this.#dump(this.#withReferences(value));
  }

  /** A value from its JSON. */
  async decode(json: JsonValue, read: ReadEntry): Promise<unknown> {
    return this.#withMessages(await this.#load(json), read);
  }

  /** The values that some channels have at a checkpoint. */
  async values(entryId: string, names: readonly string[], read: ReadEntry): Promise<Record<string, unknown>> {
    const state = await this.#state(entryId, read);
    const values: Record<string, unknown> = {};
    for (const name of names) {
      const { items = [], list = false, messages = false } = state.get(name) ?? {};
      // A message that was erased is gone.
      const kept = messages ? null : items.filter((item) => !list || !isReference(item));
      const given = kept === null ? items.slice() : await this.#copies(kept, read);
      if (list || given.length > 0) values[name] = list ? given : given[0];
    }
    return values;
  }

  /**
   * What a checkpoint changes about its parent's channels. `written` says that what tasks returned was encoded before, so that
   * a message that is the same object says the same.
   */
  async changes(
    { entryId, parent, written }: { entryId: string; parent: string | null; written: boolean },
    values: Readonly<Record<string, unknown>>,
    names: readonly string[],
    drafts: EntryDraft[],
    read: ReadEntry,
  ): Promise<Record<string, ChannelChange>> {
    const state = new Map(parent === null ? [] : await this.#state(parent, read));
    // Another one where a message turns out to be changed in place: then this state is read again, too.
    const states = this.#states;
    const changed: Record<string, ChannelChange> = {};
    for (const name of names) {
      const value = values[name];
      const list = Array.isArray(value);
      const items: unknown[] = list ? value.slice() : name in values ? [value] : [];
      const before = state.get(name)?.list === list ? (state.get(name) as Channel) : { items: [], messages: list };
      let start = 0;
      while (written && start < before.items.length && before.items[start] === items[start]) start++;
      const left = this.#withReferences(before.items.slice(start)) as JsonValue[];
      const encoded = (await this.encode(items.slice(start), drafts)) as JsonValue[];
      const after = before.items.length > 0 && list && left.every((item, index) => sameJson(item, encoded[index]));
      const live = (await this.#withMessages(encoded, read)) as unknown[];
      for (const [index, item] of live.entries()) items[start + index] = item;
      state.set(name, { items, list, messages: before.messages && encoded.every(isReference) });
      const added = after ? encoded.slice(left.length) : (this.#withReferences(items) as JsonValue[]);
      changed[name] = { after, list, items: added };
    }
    states.set(entryId, state);
    return changed;
  }

  /** Whoever is given values may change them, messages apart. */
  async #copies(items: readonly unknown[], read: ReadEntry): Promise<unknown[]> {
    return (await this.decode(this.#withReferences(items) as JsonValue, read)) as unknown[];
  }

  /** Reads no further up than every channel has a value that does not build on the one above. */
  async #state(entryId: string, read: ReadEntry): Promise<State> {
    const records: CheckpointRecord[] = [];
    let above: State | undefined;
    let open: Set<string> | undefined;
    for (let at: string | null = entryId; at !== null && open?.size !== 0; ) {
      above = this.#states.get(at);
      const record: CheckpointRecord | null = above === undefined ? dataOf(await read(at), CHECKPOINT) : null;
      if (record === null) break;
      records.push(record);
      open ??= new Set(Object.keys(record.checkpoint.channel_versions));
      for (const [name, { after }] of Object.entries(record.changed)) if (!after) open.delete(name);
      at = record.parent === null ? null : entryIdOf(record.ns, record.parent);
    }
    if (records.length === 0) return above ?? new Map();
    const lists = new Map([...(above ?? [])].map(([name, { items, list }]) => [name, { items: items.slice(), list }]));
    for (const { changed } of records.reverse()) {
      for (const [name, { after, list, items }] of Object.entries(changed)) {
        const channel = (after ? lists.get(name) : undefined) ?? { items: [], list };
        for (const item of items) channel.items.push(item);
        lists.set(name, channel);
      }
    }
    const state = new Map<string, Channel>();
    for (const [name, { items: json, list }] of lists) {
      const items = (await this.#withMessages(json, read)) as unknown[];
      state.set(name, { items, list, messages: list && items.every(isTurnMessage) });
    }
    this.#states.set(entryId, state);
    return state;
  }

  #withReferences(value: unknown): unknown {
    return replaceIn(value, isTurnMessage, (message) => ({ skein_turn: this.#turns.get(message)?.id }));
  }

  /** JSON with the messages that it refers to, which are read where they are not in memory. An erased one stays a reference. */
  async #withMessages(json: unknown, read: ReadEntry): Promise<unknown> {
    const missing = new Set<string>();
    replaceIn(json, isReference, ({ skein_turn: id }) => this.#messages.has(id) || missing.add(id));
    for (const id of missing) {
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
