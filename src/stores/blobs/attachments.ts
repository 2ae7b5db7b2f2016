import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { blobHash, blobName } from "../../session/blob.ts";
import type { EntryBody, EntryDraft } from "../../session/log/entry.ts";

/**
 * Finds the data of images and files in an entry, and replaces it by references:
 *
 * - In a message, a part with `data` becomes a part with `blob` and `bytes`.
 * - In a provider's own blocks (`providerData`), a text that is base64, or a `data:` URL, becomes `{ "skein:blob", bytes }`, with
 *   what stood before the base64 in `before`.
 * - In a line of another program, the text is split at its base64: `line` becomes a list of texts and such objects.
 *
 * Only a text that its bytes give back exactly is replaced.
 */

/** The field of a reference in JSON that is not a message. */
const REFERENCE = "skein:blob";
/** The `customType` of kept lines begins so. */
const KEPT_LINE = "foreign.";
/** Shorter texts are not decoded for comparing and hashing: they have the same form in every log. */
const CANONICAL_CHARACTERS_MIN = 64;

/** The data that was removed from drafts, and the blobs that they refer to. */
export interface ExtractedBlobs {
  /** The drafts, with references. */
  readonly drafts: readonly EntryDraft[];
  /** The bytes that were in them, by their hash. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
  /** The blobs that they already referred to: the bytes that each is said to have, by its hash. */
  readonly references: ReadonlyMap<string, number>;
}

/** Replaces data of more than `inlineMax` bytes by references; null if the drafts have no such data and no references. */
export function extractBlobs(drafts: readonly EntryDraft[], inlineMax: number): ExtractedBlobs | null {
  if (!Array.isArray(drafts) || !drafts.some(mayHold)) return null;
  const taker = new BlobTaker(inlineMax);
  let changed: EntryDraft[] | null = null;
  for (let index = 0; index < drafts.length; index++) {
    const draft = drafts[index] as EntryDraft;
    const taken = rewriteBody(draft, taker);
    if (taken === draft) continue;
    changed ??= [...drafts];
    changed[index] = taken;
  }
  if (changed === null && taker.references.size === 0) return null;
  return { drafts: changed ?? drafts, contents: taker.contents, references: taker.references };
}

/** Whether a draft may have data or references; says no to most drafts in no time. */
function mayHold(draft: EntryDraft): boolean {
  const { type, message } = (draft ?? {}) as { readonly type?: unknown; readonly message?: Fields };
  if (type === "message") return typeof message?.content !== "string" || message.providerData !== undefined;
  return (
    type === "custom" ||
    type === "custom_message" ||
    type === "queued" ||
    type === "run_request" ||
    type === "context_edit"
  );
}

/** Whether an entry can hold data: only then two forms of it can be the same. */
export function holdsAttachments(body: EntryBody): boolean {
  if (!mayHold(body)) return false;
  return rewriteBody(body, NOTICE) !== body;
}

/** An entry in the form in which data and references are the same: with the hash of the bytes in their place. */
export function canonicalAttachments<T extends { readonly type: string }>(body: T): T {
  return rewriteBody(body, CANONICAL);
}

/** An entry with all data in place of its references. */
export async function restoreEntry<T extends { readonly type: string }>(
  entry: T,
  read: (blob: string) => Promise<string | null>,
): Promise<T> {
  const references = referencesOf(entry);
  if (references.size === 0) return entry;
  const texts = new Map<string, string>();
  for (const hash of references.keys()) {
    const text = await read(blobName(hash));
    if (text !== null) texts.set(hash, text);
  }
  return rewriteBody(entry, new Restorer(texts));
}

/** The hashes that an entry refers to, with the bytes that each is said to have. */
export function referencesOf(entry: { readonly type: string }): ReadonlyMap<string, number> {
  const finder = new BlobTaker(Number.POSITIVE_INFINITY);
  rewriteBody(entry, finder);
  return finder.references;
}

/** How many base64 characters so many bytes take. */
export function base64Characters(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/**
 * The bytes of a base64 text, if they give the same text back; else null. Only the last group is encoded again to compare: to encode
 * all of a picture takes longer than to write it.
 */
export function exactBytes(text: string): Buffer | null {
  const { length } = text;
  if (length === 0 || length % 4 !== 0) return null;
  const bytes = Buffer.from(text, "base64");
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  // Characters that base64 does not have are skipped, so that bytes are missing then.
  if (bytes.length !== (length / 4) * 3 - padding) return null;
  // Two characters of the form for URLs are decoded like two others, and so are characters beyond ASCII.
  if (text.includes("-") || text.includes("_") || Buffer.byteLength(text) !== length) return null;
  return bytes.toString("base64", bytes.length - (3 - padding)) === text.slice(length - 4) ? bytes : null;
}

/** The SHA-256 of bytes in hexadecimal. */
export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

type Fields = Readonly<Record<string, unknown>>;

/** Maps a part of a message, and a text or reference elsewhere, to its replacement; an unchanged value is returned as the same object. */
interface Rewriter {
  part(part: Fields): unknown;
  text(text: string): unknown;
  reference(reference: Fields, hash: string): unknown;
  /** Texts with fewer characters have no data that matters here. */
  readonly charactersMin: number;
}

/** Puts references in the place of data, and notes the references that are there. */
class BlobTaker implements Rewriter {
  readonly contents = new Map<string, Uint8Array>();
  readonly references = new Map<string, number>();
  readonly charactersMin: number;
  readonly #inlineMax: number;

  constructor(inlineMax: number) {
    this.#inlineMax = inlineMax;
    this.charactersMin = inlineMax === Number.POSITIVE_INFINITY ? inlineMax : base64Characters(inlineMax) + 1;
  }

  part(part: Fields): unknown {
    const { data, blob } = part;
    if (blob !== undefined) {
      const hash = blobHash(blob);
      if (hash !== null) this.references.set(hash, part.bytes as number);
      return part;
    }
    if (data instanceof Uint8Array) {
      const bytes = Buffer.from(data);
      if (bytes.length <= this.#inlineMax) return { ...part, data: bytes.toString("base64") };
      return this.#referTo(part, bytes);
    }
    if (typeof data !== "string" || data.length < this.charactersMin) return part;
    const bytes = exactBytes(data);
    return bytes === null || bytes.length <= this.#inlineMax ? part : this.#referTo(part, bytes);
  }

  text(text: string): unknown {
    // A shorter text has the same form in every log, whatever `inlineMax` is.
    if (text.length < CANONICAL_CHARACTERS_MIN) return text;
    const bytes = exactBytes(text);
    if (bytes === null || bytes.length <= this.#inlineMax) return text;
    return { [REFERENCE]: blobName(this.#take(bytes)), bytes: bytes.length };
  }

  reference(reference: Fields, hash: string): unknown {
    this.references.set(hash, reference.bytes as number);
    return reference;
  }

  #referTo({ data: _data, ...part }: Fields, bytes: Buffer): unknown {
    return { ...part, blob: blobName(this.#take(bytes)), bytes: bytes.length };
  }

  #take(bytes: Buffer): string {
    const hash = hashOf(bytes);
    this.contents.set(hash, bytes);
    return hash;
  }
}

/** Puts the data back. */
class Restorer implements Rewriter {
  readonly charactersMin = Number.POSITIVE_INFINITY;
  readonly #texts: ReadonlyMap<string, string>;

  constructor(texts: ReadonlyMap<string, string>) {
    this.#texts = texts;
  }

  part(part: Fields): unknown {
    const data = this.#texts.get(blobHash(part.blob) ?? "");
    if (data === undefined) return part;
    const { blob: _blob, bytes: _bytes, ...rest } = part;
    return { ...rest, data };
  }

  text(text: string): unknown {
    return text;
  }

  reference(reference: Fields, hash: string): unknown {
    return this.#texts.get(hash) ?? reference;
  }
}

const CANONICAL: Rewriter = {
  charactersMin: CANONICAL_CHARACTERS_MIN,
  part(part) {
    const { blob, bytes, data, ...rest } = part;
    const hash = blobHash(blob);
    if (hash !== null) return { ...rest, sha256: hash };
    const exact = typeof data === "string" ? exactBytes(data) : null;
    return exact === null ? part : { ...rest, sha256: hashOf(exact) };
  },
  text(text) {
    const bytes = exactBytes(text);
    return bytes === null ? text : { sha256: hashOf(bytes) };
  },
  reference: (_reference, hash) => ({ sha256: hash }),
};

/** Changes whatever could have another form. */
const NOTICE: Rewriter = {
  charactersMin: CANONICAL_CHARACTERS_MIN,
  part: (part) => (part.data === undefined && part.blob === undefined ? part : {}),
  text: () => ({}),
  reference: () => ({}),
};

/** Rewrites all data of an entry or draft. Returns the same object if nothing changes. */
function rewriteBody<T extends { readonly type: string }>(body: T, rewriter: Rewriter): T {
  const entry = (body ?? {}) as unknown as Fields & EntryBody;
  switch (entry.type) {
    case "message":
      return withField(body, "message", rewriteMessage(entry.message, rewriter));
    case "context_edit":
      return withField(body, "message", rewriteMessage(entry.message, rewriter));
    case "custom_message":
    case "queued":
      return withField(body, "content", rewriteContent(entry.content, rewriter));
    case "run_request": {
      const asked = withField(body, "input", rewriteContent(entry.input, rewriter));
      return withField(
        asked,
        "messages",
        mapList(entry.messages, (each) => rewriteMessage(each, rewriter)),
      );
    }
    case "custom": {
      const { customType, data } = entry;
      if (typeof customType !== "string" || !customType.startsWith(KEPT_LINE) || !isFields(data)) return body;
      const line = rewriteLine(data.line, rewriter);
      return line === data.line ? body : withField(body, "data", { ...data, line });
    }
    default:
      return body;
  }
}

function rewriteMessage(message: unknown, rewriter: Rewriter): unknown {
  if (!isFields(message)) return message;
  const said = withField(message, "content", rewriteContent(message.content, rewriter));
  return message.providerData === undefined
    ? said
    : withField(said, "providerData", rewriteJson(message.providerData, rewriter, 0));
}

function rewriteContent(content: unknown, rewriter: Rewriter): unknown {
  if (typeof content === "string") return content;
  return mapList(content, (part) =>
    isFields(part) && (part.type === "image" || part.type === "file") ? rewriter.part(part) : part,
  );
}

const DATA_URL = /^data:[\w.+-]*\/?[\w.+-]*(?:;[\w.+-]+=[\w.+-]*)*;base64,/;
/** Deeper values cannot be stored, and are refused when they are copied. */
const DEPTH_MAX = 200;

function rewriteJson(value: unknown, rewriter: Rewriter, depth: number): unknown {
  if (typeof value === "string") return value.length < rewriter.charactersMin ? value : rewriteText(value, rewriter);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return mapList(value, (item) => rewriteJson(item, rewriter, depth + 1));
  const fields = value as Fields;
  const hash = blobHash(fields[REFERENCE]);
  if (hash !== null) return rewriteReference(fields, hash, rewriter);
  let made: Record<string, unknown> | null = null;
  for (const key of Object.keys(fields)) {
    const item = rewriteJson(fields[key], rewriter, depth + 1);
    if (item === fields[key]) continue;
    made ??= { ...fields };
    made[key] = item;
  }
  return made ?? value;
}

function rewriteText(text: string, rewriter: Rewriter): unknown {
  const before = text.startsWith("data:") ? (DATA_URL.exec(text.slice(0, 200))?.[0] ?? "") : "";
  const data = before === "" ? text : text.slice(before.length);
  const made = data.length < rewriter.charactersMin ? data : rewriter.text(data);
  if (made === data) return text;
  return before === "" ? made : { ...(made as Fields), before };
}

function rewriteReference(fields: Fields, hash: string, rewriter: Rewriter): unknown {
  const made = rewriter.reference(fields, hash);
  if (made === fields) return fields;
  const before = typeof fields.before === "string" ? fields.before : "";
  if (typeof made === "string") return `${before}${made}`;
  return before === "" ? made : { ...(made as Fields), before };
}

/** A run of base64 in a text. */
const BASE64 = /[A-Za-z0-9+/]{64,}={0,2}/g;

/** A kept line: a text, or the list of texts and references that it was split into. */
function rewriteLine(line: unknown, rewriter: Rewriter): unknown {
  if (typeof line === "string" && line.length < rewriter.charactersMin) return line;
  const pieces = Array.isArray(line) ? line : typeof line === "string" ? [line] : null;
  if (pieces === null) return line;
  const made: unknown[] = [];
  let changed = false;
  const add = (piece: unknown): void => {
    if (typeof piece === "string" && typeof made.at(-1) === "string") made[made.length - 1] += piece;
    else if (piece !== "") made.push(piece);
  };
  for (const piece of pieces) {
    if (typeof piece === "string") {
      for (const part of splitAtBase64(piece, rewriter)) {
        changed ||= typeof part !== "string";
        add(part);
      }
      continue;
    }
    const hash = isFields(piece) ? blobHash(piece[REFERENCE]) : null;
    const other = hash === null ? piece : rewriteReference(piece as Fields, hash, rewriter);
    changed ||= other !== piece;
    add(other);
  }
  if (!changed) return line;
  return made.every((piece) => typeof piece === "string") ? made.join("") : made;
}

function splitAtBase64(text: string, rewriter: Rewriter): readonly unknown[] {
  if (text.length < rewriter.charactersMin) return [text];
  const pieces: unknown[] = [];
  let from = 0;
  for (const { index, 0: run } of text.matchAll(BASE64)) {
    // A text that was cut within its base64 has a run of any length: as much of it as is whole bytes is replaced.
    const whole = run.length % 4 === 0 ? run : withoutRest(run);
    if (whole.length < rewriter.charactersMin) continue;
    const made = rewriter.text(whole);
    if (made === whole) continue;
    pieces.push(text.slice(from, index), made);
    from = index + whole.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** The first characters of a run of base64 that are whole groups of four. */
function withoutRest(run: string): string {
  const end = run.indexOf("=");
  const length = end < 0 ? run.length : end;
  return run.slice(0, length - (length % 4));
}

function withField<T extends object>(object: T, field: string, value: unknown): T {
  return (object as Fields)[field] === value ? object : { ...object, [field]: value };
}

function mapList(list: unknown, map: (item: unknown) => unknown): unknown {
  if (!Array.isArray(list)) return list;
  let made: unknown[] | null = null;
  for (let index = 0; index < list.length; index++) {
    const item = map(list[index]);
    if (item === list[index]) continue;
    made ??= [...list];
    made[index] = item;
  }
  return made ?? list;
}

function isFields(value: unknown): value is Fields & JsonObject & Record<string, JsonValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
