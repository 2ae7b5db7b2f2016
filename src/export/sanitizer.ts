import { checkArgument, checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { homedir } from "node:os";
import { JSON_DEPTH_MAX } from "../internal/json.ts";
import { isSecretMember, isSecretPair, isTelling, SECRET_PATTERNS, type SecretPattern } from "./secret-patterns.ts";

/**
 * Replaces secrets and home directories by placeholders.
 *
 * - A secret becomes `[secret 1]`; the same secret always gets the same number.
 * - A secret that was recognised once is replaced everywhere, even without a telling context, if it is long and irregular
 *   enough not to be a word. Therefore call `learn` with all values before you sanitize any of them.
 * - All texts in a value are searched, also JSON within texts, and the data of `file` and `image` parts if it is text. Keys of
 *   objects are not changed.
 * - Sanitizing is idempotent.
 */
export interface Sanitizer {
  /** The number of different secrets found so far. */
  readonly secrets: number;
  /** Collects the secrets in a text or JSON value. */
  learn(value: unknown): void;
  /** A copy of a text or JSON value without secrets. */
  sanitize<T>(value: T): T;
}

/** Options of `createSanitizer`. */
export interface SanitizerOptions {
  /** A directory to replace by `~`, in addition to paths that look like home directories (default: the user's home). */
  readonly homeDirectory?: string;
}

/** A sanitizer that can also work in steps: each call of `next` is a step, between which the caller can yield. */
export interface SteppedSanitizer extends Sanitizer {
  learnSteps(value: unknown): Generator<void, void>;
  sanitizeSteps<T>(value: T): Generator<void, T>;
}

/** Creates a sanitizer that knows no secrets yet. */
export function createSanitizer(options: SanitizerOptions = {}): Sanitizer {
  checkOptionsOf(options, { homeDirectory: true } satisfies KeysOf<SanitizerOptions>, "createSanitizer");
  return createSteppedSanitizer(options);
}

/** Like `createSanitizer`, for callers that work in steps. */
export function createSteppedSanitizer(options: SanitizerOptions = {}): SteppedSanitizer {
  return new SecretSanitizer(options.homeDirectory ?? ownHomeDirectory());
}

/** Returns the text without its secrets. */
export function sanitizeText(text: string): string {
  checkArgument(typeof text === "string", text, "sanitizeText", "a text");
  const sanitizer = createSanitizer();
  sanitizer.learn(text);
  return sanitizer.sanitize(text);
}

/** How many secrets are also searched for literally, without any context. */
const LITERALS_MAX = 1000;
/** How many characters one step searches: one pattern on a long text, or all patterns on short texts. */
const STEP_CHARACTERS = 128 * 1024;
/** How far a pattern looks behind its match. */
const LOOKBEHIND_CHARACTERS = 32;
/** How many levels of JSON within texts are searched. */
const NESTED_TEXTS_MAX = 4;

const SEPARATOR = String.raw`(?:\\?\/|%2F)`;
const BACKSLASH = String.raw`(?:\\{1,4}|\/|%5C)`;
const HOME_DIRECTORIES = new RegExp(
  [
    String.raw`(?:(?<![\w.~-])|(?<=%[0-9A-F]{2})|(?<=\\[nrtbf]))(?:`,
    String.raw`${SEPARATOR}(?:home|Users)${SEPARATOR}[^\s\/\\"'\x60<>|:;,()\[\]{}%&?#]{1,64}`,
    String.raw`|${SEPARATOR}root(?![\w.-])`,
    String.raw`|[A-Z]:${BACKSLASH}(?:Users|Documents and Settings)${BACKSLASH}(?:[^\\\/"'<>|:;\r\n]{1,64}(?=\\)|[^\s\/\\"'\x60<>|:;,()%]{1,64})`,
    ")",
  ].join(""),
  "gi",
);

class SecretSanitizer implements SteppedSanitizer {
  readonly #numbers = new Map<string, number>();
  readonly #literals = new Set<string>();
  readonly #home: RegExp | null;
  #known: RegExp | null = null;
  #learning = false;
  /** How many characters were searched since the last step. */
  #looked = 0;

  constructor(homeDirectory: string) {
    const usable = homeDirectory.length > 3;
    this.#home = usable ? new RegExp(`${escapePattern(homeDirectory)}(?![\\w.-])`, "g") : null;
  }

  get secrets(): number {
    return this.#numbers.size;
  }

  learn(value: unknown): void {
    allOf(this.learnSteps(value));
  }

  sanitize<T>(value: T): T {
    return allOf(this.sanitizeSteps(value));
  }

  *learnSteps(value: unknown): Generator<void, void> {
    const steps = this.#walk(value, false, 0, 0);
    for (;;) {
      // Set for each step, because the caller may sanitize another value between two steps.
      this.#learning = true;
      try {
        if (steps.next().done === true) return;
      } finally {
        this.#learning = false;
      }
      yield;
    }
  }

  *sanitizeSteps<T>(value: T): Generator<void, T> {
    return (yield* this.#walk(value, false, 0, 0)) as T;
  }

  *#walk(value: unknown, named: boolean, depth: number, nested: number): Generator<void, unknown> {
    if (typeof value === "string") {
      return named && isTelling(value) ? this.#hide(value) : yield* this.#text(value, nested);
    }
    if (typeof value !== "object" || value === null) return value;
    if (depth > JSON_DEPTH_MAX) throw new TooDeep();
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) items.push(yield* this.#walk(item, named, depth + 1, nested));
      return items;
    }
    const carried = dataOf(value);
    const isPair = isSecretPair(value);
    const entries: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const harmless =
        key === "data" && carried !== null
          ? yield* this.#carried(item as string, carried)
          : yield* this.#walk(item, isSecretMember(key, item) || (isPair && key === "value"), depth + 1, nested);
      entries.push([key, harmless]);
    }
    return Object.fromEntries(entries);
  }

  *#carried(data: string, text: string): Generator<void, string> {
    const harmless = yield* this.#text(text, 0);
    return harmless === text ? data : Buffer.from(harmless, "utf8").toString("base64");
  }

  *#text(text: string, nested: number): Generator<void, string> {
    let result = text;
    for (const searched of SECRET_PATTERNS) {
      this.#looked += result.length;
      if (this.#looked > STEP_CHARACTERS) {
        this.#looked = 0;
        yield;
      }
      result = yield* this.#replaceFound(result, searched);
    }
    if (!this.#learning) {
      if (result.length > STEP_CHARACTERS) yield;
      result = this.#replaceKnown(result);
    }
    if (this.#home !== null) result = result.replace(this.#home, "~");
    result = result.replace(HOME_DIRECTORIES, "~");
    return nested < NESTED_TEXTS_MAX && /^\s*[[{]/.test(result) ? yield* this.#json(result, nested + 1) : result;
  }

  /** Replaces the secrets that a pattern finds, in steps on a long text if the pattern has a `matchMax`. */
  *#replaceFound(text: string, { pattern, confirms, matchMax }: SecretPattern): Generator<void, string> {
    const harmless = (
      whole: string,
      { before = "", secret = "" }: { before?: string; secret?: string } = {},
    ): string => (confirms?.(secret) === false ? whole : `${before}${this.#hide(secret)}`);
    if (matchMax === undefined || text.length <= STEP_CHARACTERS + matchMax)
      return text.replace(pattern, (...found) => harmless(found[0], found.at(-1)));
    const pieces: string[] = [];
    const stepCharacters = Math.max(STEP_CHARACTERS, matchMax);
    for (let at = 0; at < text.length; ) {
      const from = Math.max(0, at - LOOKBEHIND_CHARACTERS);
      const end = Math.min(at + stepCharacters, text.length);
      const part = text.slice(from, end + matchMax);
      pattern.lastIndex = at - from;
      for (let found = pattern.exec(part); found !== null; found = pattern.exec(part)) {
        const start = from + found.index;
        // The next step finds it, with all of its text.
        if (start >= end) break;
        pieces.push(text.slice(at, start), harmless(found[0], found.groups));
        at = start + found[0].length;
      }
      if (at < end) {
        pieces.push(text.slice(at, end));
        at = end;
      }
      pattern.lastIndex = 0;
      yield;
    }
    return pieces.join("");
  }

  /** Searches a text that is JSON: it may hold a secret in escaped form, or under a key that names a secret. */
  *#json(text: string, nested: number): Generator<void, string> {
    try {
      const value: unknown = JSON.parse(text);
      const before = JSON.stringify(value);
      const after = JSON.stringify(yield* this.#walk(value, false, 0, nested));
      return before === after ? text : after;
    } catch (error) {
      // Not JSON, or nested too deep to be decoded by anyone: treat it as plain text.
      if (error instanceof SyntaxError || error instanceof TooDeep || error instanceof RangeError) return text;
      throw error;
    }
  }

  #replaceKnown(text: string): string {
    if (this.#known === null && this.#literals.size > 0) {
      const spellings = [...this.#literals].flatMap((secret) => [
        secret,
        JSON.stringify(secret).slice(1, -1),
        encodeURIComponent(secret),
      ]);
      // Longest first, so that a secret that is a prefix of another does not leave the rest of it.
      const ordered = [...new Set(spellings)].sort((a, b) => b.length - a.length);
      this.#known = new RegExp(ordered.map(escapePattern).join("|"), "g");
    }
    return this.#known === null
      ? text
      : text.replace(this.#known, (found) => this.#hide(decoded(found, this.#numbers)));
  }

  #hide(secret: string): string {
    let number = this.#numbers.get(secret);
    if (number === undefined) {
      number = this.#numbers.size + 1;
      this.#numbers.set(secret, number);
      if (this.#literals.size < LITERALS_MAX && isUnmistakable(secret)) {
        this.#literals.add(secret);
        this.#known = null;
      }
    }
    return `[secret ${number}]`;
  }
}

class TooDeep extends Error {}

function allOf<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Decodes an escaped or percent-encoded form of a known secret. */
function decoded(spelling: string, secrets: ReadonlyMap<string, number>): string {
  if (secrets.has(spelling)) return spelling;
  for (const decode of [(text: string) => JSON.parse(`"${text}"`) as string, decodeURIComponent]) {
    try {
      const secret = decode(spelling);
      if (secrets.has(secret)) return secret;
    } catch {
      // Not encoded in this way: try the next one.
    }
  }
  return spelling;
}

/** Whether a secret is so irregular that any equal text is that secret, and not a common word. */
function isUnmistakable(secret: string): boolean {
  if (secret.length < 8 || secret.length > 4096) return false;
  return /[A-Za-z]/.test(secret) && /[^A-Za-z_-]/.test(secret) && !/[\s\p{Cs}]/u.test(secret);
}

/** The text in the base64 data of a content part; null if it is not text. */
function dataOf(value: object): string | null {
  const { type, data } = value as { readonly type?: unknown; readonly data?: unknown };
  if ((type !== "file" && type !== "image") || typeof data !== "string") return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(data, "base64"));
  } catch {
    return null;
  }
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

function ownHomeDirectory(): string {
  try {
    return homedir();
  } catch {
    return "";
  }
}
