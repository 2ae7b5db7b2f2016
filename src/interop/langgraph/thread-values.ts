import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { EntryDraft } from "../../session/entry.ts";
import type { ChannelChange } from "./checkpoint-record.ts";
import { isTurnMessage, type SerializedMessage, turnOf } from "./message-turn.ts";

/** Stands in a value for the message that a turn keeps. */
const TURN = "skein_turn";

const RECENT_MESSAGES = 1000;

/** A channel's value at a checkpoint: as JSON, and the messages themselves where it is a list of nothing else. */
export interface ChannelValue {
  readonly json: JsonValue;
  readonly messages: readonly unknown[] | null;
  readonly depth: number;
}

interface KnownMessage {
  readonly turn: string;
  readonly content: unknown;
  readonly digest: string;
}

/** What one append has to write for the messages that its values contain. */
export interface NewTurns {
  readonly drafts: EntryDraft[];
  readonly known: Map<BaseMessage, KnownMessage>;
}

/** Nothing to write yet. */
export function noTurns(): NewTurns {
  return { drafts: [], known: new Map() };
}

/**
 * Turns the values of one thread into JSON and back. A message is stored once, as a turn; wherever it stands, the JSON has a
 * reference. A message is the same one while it is the same object; where it may have been changed in place, what it says is
 * compared, too.
 */
export class ThreadValues {
  readonly #serde: SerializerProtocol;
  readonly #known = new WeakMap<object, KnownMessage>();
  #edited = false;
  readonly #recent = new LruCache<string, unknown>(RECENT_MESSAGES);

  constructor(serde: SerializerProtocol) {
    this.#serde = serde;
  }

  /** Whether a message was stored again, since a task changed it in place: until then identity is enough. */
  get edited(): boolean {
    return this.#edited;
  }

  /** A value as JSON. Messages that no turn keeps yet are added to `turns`. */
  async encode(value: unknown, turns: NewTurns, mayBeChanged: boolean): Promise<JsonValue> {
    const messages = new Set<BaseMessage>();
    mapMessages(value, (message) => messages.add(message));
    const unsure = [...messages].filter((message) => mayBeChanged || this.#lookUp(message, turns) === undefined);
    // The reducer of a messages channel would give the same object an id later.
    for (const message of unsure) if (message.id == null) message.id = message.lc_kwargs["id"] = uuidv7();
    const texts = (await this.#dump(unsure)) as unknown as readonly SerializedMessage[];
    for (const [index, message] of unsure.entries()) this.#note(message, texts[index] as SerializedMessage, turns);
    return this.#dump(mapMessages(value, (message) => ({ [TURN]: this.#lookUp(message, turns)?.turn })));
  }

  /** A channel's value, and how it differs from the one at the parent checkpoint. */
  async encodeChannel(
    value: unknown,
    parent: ChannelValue | undefined,
    turns: NewTurns,
    mayBeChanged: boolean,
  ): Promise<{ readonly change: ChannelChange; readonly channel: ChannelValue }> {
    const before = parent?.json;
    if (!Array.isArray(value) || parent === undefined || !Array.isArray(before) || parent.depth >= value.length) {
      const json = await this.encode(value, turns, mayBeChanged);
      const messages = Array.isArray(value) && (json as readonly JsonValue[]).every(isTurn) ? value.slice() : null;
      return { change: { value: json }, channel: { json, messages, depth: 0 } };
    }
    const { messages: known } = parent;
    let start = 0;
    if (known !== null)
      start = countWhile(
        value,
        (item, index) => item === known[index] && this.isAsStored(item, before[index] as JsonValue, mayBeChanged),
      );
    let rest = (await this.encode(value.slice(start), turns, mayBeChanged)) as readonly JsonValue[];
    const same = countWhile(
      rest,
      (item, index) => start + index < before.length && sameJson(item, before[start + index]),
    );
    start += same;
    rest = rest.slice(same);
    const kept = countWhile(
      rest.toReversed(),
      (item, index) => start + index < before.length && sameJson(item, before[before.length - 1 - index]),
    );
    const items = rest.slice(0, rest.length - kept);
    const change = { start, removed: before.length - start - kept, items, depth: parent.depth + 1 };
    const json = before.slice();
    splice(json, change, items);
    const messages = known !== null && items.every(isTurn) ? value.slice() : null;
    return { change, channel: { json, messages, depth: change.depth } };
  }

  /** Notes that the turns are stored. */
  remember({ known }: NewTurns): void {
    for (const [message, about] of known) {
      const { turn: before } = this.#known.get(message) ?? {};
      if (before !== undefined) this.#recent.delete(before);
      this.#edited ||= before !== undefined;
      this.#known.set(message, about);
      this.#recent.set(about.turn, message);
    }
  }

  /** Makes the messages of turns that were read from the log. */
  async revive(turns: ReadonlyMap<string, SerializedMessage>): Promise<Map<string, unknown>> {
    const messages = new Map<string, unknown>();
    for (const [turn, text] of turns) {
      const message = constructed(text) ?? ((await this.#load(text as unknown as JsonValue)) as BaseMessage);
      messages.set(turn, message);
      this.#known.set(message, { turn, content: message.content, digest: digestOf(text) });
      this.#recent.set(turn, message);
    }
    return messages;
  }

  /** Whether a message still says what its turn does, as far as that can be seen without writing it as JSON. */
  isAsStored(message: unknown, turn: JsonValue, mayBeChanged: boolean): boolean {
    if (!mayBeChanged && !this.#edited) return true;
    const known = this.#known.get(message as BaseMessage);
    return isTurn(turn) && known?.turn === turnIn(turn) && known.content === (message as BaseMessage).content;
  }

  /** The message of a turn, while it is still remembered. */
  messageOf(turn: string): unknown {
    return this.#recent.get(turn);
  }

  /** A value from its JSON; `messageOf` gives the messages that it refers to. */
  async decode(json: JsonValue, messageOf: (turn: string) => unknown): Promise<unknown> {
    return mapPlain(await this.#load(json), (value) => (isTurn(value) ? { instead: messageOf(turnIn(value)) } : null));
  }

  #lookUp(message: BaseMessage, turns: NewTurns): KnownMessage | undefined {
    return turns.known.get(message) ?? this.#known.get(message);
  }

  #note(message: BaseMessage, text: SerializedMessage, turns: NewTurns): void {
    const digest = digestOf(text);
    if (this.#lookUp(message, turns)?.digest === digest) return;
    const turn = uuidv7();
    turns.known.set(message, { turn, content: message.content, digest });
    turns.drafts.push({ type: "message", id: turn, message: turnOf(message, text) });
  }

  async #dump(value: unknown): Promise<JsonValue> {
    // In a list, as bytes alone would not become JSON.
    const [, bytes] = await this.#serde.dumpsTyped([value]);
    return JSON.parse(new TextDecoder().decode(bytes))[0];
  }

  async #load(json: JsonValue): Promise<unknown> {
    return (await this.#serde.loadsTyped("json", JSON.stringify([json])))[0];
  }
}

/** Replaces a part of a list in place. */
export function splice<T>(
  list: T[],
  { start, removed }: { start: number; removed: number },
  items: readonly T[],
): void {
  const after = list.splice(start).slice(removed);
  // Not by spreading, as a list may be longer than the arguments of a call.
  for (const item of items) list.push(item);
  for (const item of after) list.push(item);
}

/** The turns that a value refers to. */
export function turnsIn(json: JsonValue, found: Set<string> = new Set()): Set<string> {
  mapPlain(json, (value) => {
    if (!isTurn(value)) return null;
    found.add(turnIn(value));
    return { instead: null };
  });
  return found;
}

/** A reference to the message of a turn. */
type TurnReference = { readonly [TURN]: string };

/** Whether a value stands for the message of a turn. */
export function isTurn(value: unknown): value is TurnReference {
  return typeof value === "object" && value !== null && TURN in value;
}

/** The turn that a reference names. */
export function turnIn(reference: TurnReference): string {
  return reference[TURN];
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

function countWhile<T>(items: readonly T[], holds: (item: T, index: number) => boolean): number {
  const end = items.findIndex((item, index) => !holds(item, index));
  return end === -1 ? items.length : end;
}

function mapMessages(value: unknown, instead: (message: BaseMessage) => unknown): unknown {
  return mapPlain(value, (item) => (isTurnMessage(item) ? { instead: instead(item) } : null));
}

/** A copy of a value with some objects replaced, at any depth of lists, plain objects, sends and snapshots. */
function mapPlain(value: unknown, replace: (value: object) => { readonly instead: unknown } | null): unknown {
  if (typeof value !== "object" || value === null) return value;
  const replaced = replace(value);
  if (replaced !== null) return replaced.instead;
  if (Array.isArray(value)) return value.map((item) => mapPlain(item, replace));
  const prototype: unknown = Object.getPrototypeOf(value);
  const special = "lg_name" in value && (value.lg_name === "Send" || value.lg_name === "DeltaSnapshot");
  if (prototype !== Object.prototype && prototype !== null && !special) return value;
  const copy = Object.create(prototype as object | null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value as JsonObject)) copy[key] = mapPlain(item, replace);
  return copy;
}
