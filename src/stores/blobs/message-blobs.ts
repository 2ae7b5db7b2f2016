import { defined } from "../../internal/defined.ts";
import { sameJson } from "../../internal/json.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import type { FindBlob } from "../../session/blob.ts";
import { ENTRY_BYTES_MAX } from "../../session/limits.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { Message } from "../../session/message.ts";
import type { SessionStore } from "../../session/store.ts";
import { base64Characters, canonicalAttachments, referencesOf, restoreEntry } from "./attachments.ts";

/** A stored session, whose blobs a message refers to. */
export interface BlobPlace {
  readonly store: SessionStore;
  readonly sessionId: string;
  /** The root session of its forks, if the session may be deleted. */
  readonly root?: string;
}

/** The most characters of data that are kept of the sessions of a store, for the next request. */
const CACHE_CHARACTERS_MAX = 64 * 1024 * 1024;
const CACHED_MAX = 1000;

/** The sessions from which messages with blobs come. Code of this process got such a message only by reading that session. */
const places = new WeakMap<Message, BlobPlace>();
const caches = new WeakMap<SessionStore, LruCache<string, string>>();
const plain = new WeakSet<Message>();

/** Whether a message has an image or file whose bytes are a blob. */
export function refersToBlobs(message: Message): boolean {
  const { content } = message;
  const hasParts = typeof content === "object" && content !== null;
  if (!hasParts && (message.role !== "assistant" || message.providerData === undefined)) return false;
  if (plain.has(message)) return false;
  if (referencesOf({ type: "message", message } as never).size > 0) return true;
  plain.add(message);
  return false;
}

/** Notes where the blobs of a message are, so that it can be shown to a model and stored elsewhere. */
export function noteBlobPlace(message: Message, place: BlobPlace): void {
  if (refersToBlobs(message)) places.set(message, place);
}

/** Finds the blobs of messages where each of them was read; undefined if none of them has any. */
export function findBlobOf(messages: Iterable<Message | undefined>): FindBlob | undefined {
  const known = placesOf(messages);
  if (known.length === 0) return undefined;
  return async (blob) => {
    for (const { store, sessionId } of known) {
      const found = await store.blob(sessionId, blob);
      if (found !== null) return found;
    }
    return null;
  };
}

/** The sessions from which messages come, without duplicates. */
export function placesOf(messages: Iterable<Message | undefined>): readonly BlobPlace[] {
  const known: BlobPlace[] = [];
  for (const message of messages) {
    const place = message === undefined ? undefined : places.get(message);
    if (place === undefined) continue;
    if (!known.some(({ store, sessionId }) => store === place.store && sessionId === place.sessionId))
      known.push(place);
  }
  return known;
}

/** Messages with the data of their images and files, as a model gets them. A missing blob stays a reference. */
export async function withAttachments(
  messages: readonly Message[],
  known: readonly BlobPlace[],
): Promise<readonly Message[]> {
  const made: Message[] = [];
  for (const message of messages) {
    if (!refersToBlobs(message)) {
      made.push(message);
      continue;
    }
    const own = places.get(message);
    const searched = own === undefined ? known : [...known, own];
    const read = (blob: string): Promise<string | null> => readData(searched, blob);
    made.push((await restoreEntry({ type: "message", message } as const, read)).message);
  }
  return made;
}

/**
 * An entry with the data of its images and files, for export to another store or format. Stays as it is if it would have more
 * characters than an entry may have, or than `charactersMax`, or if a blob is not there.
 */
export async function withData<T extends Entry>(
  entry: T,
  place: BlobPlace,
  charactersMax: number = ENTRY_BYTES_MAX,
): Promise<T> {
  const references = referencesOf(entry);
  if (references.size === 0) return entry;
  if (charactersMax !== Number.POSITIVE_INFINITY) {
    let characters = JSON.stringify(entry).length;
    for (const bytes of references.values()) characters += base64Characters(bytes);
    if (characters > charactersMax) return entry;
  }
  return restoreEntry(entry, (blob) => readData([place], blob));
}

/** The data of a blob as base64, from the first of the places that has it. */
export async function readData(known: readonly BlobPlace[], blob: string): Promise<string | null> {
  for (const { store, sessionId, root } of known) {
    const cache =
      caches.get(store) ?? new LruCache(CACHED_MAX, { max: CACHE_CHARACTERS_MAX, of: (text: string) => text.length });
    caches.set(store, cache);
    // By session, too: what one of them has, another must not get.
    const key = `${sessionId}\n${blob}`;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const found = await store.blob(sessionId, blob, defined({ root }));
    if (found === null) continue;
    const bytes = await found.bytes();
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
    cache.set(key, text);
    return text;
  }
  return null;
}

/** Whether two messages say the same, whatever form their images and files have. */
export function sameMessage(one: Message, other: Message): boolean {
  return sameJson(one, other) || (mayDiffer(one, other) && sameJson(canonical(one), canonical(other)));
}

function mayDiffer(one: Message, other: Message): boolean {
  return one.role === other.role && (refersToBlobs(one) || refersToBlobs(other));
}

function canonical(message: Message): Message {
  return canonicalAttachments({ type: "message", message } as const).message;
}
