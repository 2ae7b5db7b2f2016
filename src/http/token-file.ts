import { readFile } from "node:fs/promises";
import { SessionError, show } from "../session/errors.ts";
import type { ApiToken, TokenSource } from "./api-token.ts";
import type { CallerInit } from "./caller-init.ts";
import { readCaller } from "./read-caller.ts";

const LOOK_MS = 300;
const GRACE_MS = 60_000;
const TELL_MS = 10_000;
const FIELDS: ReadonlySet<string> = new Set(["hash", "userId", "admin", "may", "expiresAt"]);

/** How a token file is followed. */
export interface TokenFileOptions {
  /**
   * Told that the file is broken or gone, at once and every ten seconds until it is good again (default: a warning of the
   * process).
   */
  readonly onProblem?: (error: SessionError) => void;
  /** How long the tokens that it had last still count then (default 60 s). */
  readonly graceMs?: number;
}

/**
 * The tokens of a file, for `tokens` of a server.
 *
 * - A line that is added or taken out counts within a second, however the file is written: in place, or replaced by a rename.
 * - While the file is broken, empty or gone, the tokens that it had last count for `graceMs`; then none does until it is good.
 * - Disposing ends the looking; the tokens stay as they are then.
 */
export interface TokenFile extends TokenSource, Disposable {}

/**
 * Reads a token file, and again whenever it changes: one JSON object on each line, as `skein token` prints it; blank lines and
 * those that begin with # say nothing.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the line, and nothing of what is in it.
 */
export async function openTokenFile(path: string, options: TokenFileOptions = {}): Promise<TokenFile> {
  const text = await readText(path);
  return new FollowedTokenFile(path, text, parseTokens(path, text), options);
}

class FollowedTokenFile implements TokenFile {
  readonly #path: string;
  readonly #onProblem: (error: SessionError) => void;
  readonly #graceMs: number;
  #text: string;
  #tokens: readonly ApiToken[];
  /** Since when the file is no good; null while it is. */
  #badSinceMs: number | null = null;
  #toldMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(path: string, text: string, tokens: readonly ApiToken[], options: TokenFileOptions) {
    this.#path = path;
    this.#text = text;
    this.#tokens = tokens;
    this.#onProblem = options.onProblem ?? ((error) => process.emitWarning(error.message));
    this.#graceMs = options.graceMs ?? GRACE_MS;
    this.#wait();
  }

  current(): readonly ApiToken[] | null {
    return this.#leftMs() > 0 ? this.#tokens : null;
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** How long the tokens count if nothing changes. */
  #leftMs(): number {
    if (this.#badSinceMs === null) return Number.POSITIVE_INFINITY;
    return this.#badSinceMs + this.#graceMs - performance.now();
  }

  #wait(): void {
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS).unref();
  }

  /** Reads all of it, as the times of a file do not tell two changes in one moment apart. */
  async #look(): Promise<void> {
    const timer = this.#timer;
    try {
      const text = await readText(this.#path);
      if (text !== this.#text || this.#badSinceMs !== null) this.#tokens = parseTokens(this.#path, text);
      this.#text = text;
      this.#badSinceMs = null;
    } catch (error) {
      this.#complain(error as SessionError);
    }
    if (this.#timer === timer) this.#wait();
  }

  #complain(cause: SessionError): void {
    const nowMs = performance.now();
    if (this.#badSinceMs !== null && nowMs - this.#toldMs < TELL_MS) return;
    this.#badSinceMs ??= nowMs;
    this.#toldMs = nowMs;
    const seconds = Math.ceil(this.#leftMs() / 1000);
    const then = seconds > 0 ? `Its last good tokens count for ${seconds} s more.` : "Nobody comes in by a token now.";
    this.#onProblem(new SessionError("INVALID_OPTION", `${cause.message} ${then}`, { cause }));
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new SessionError("INVALID_OPTION", `The token file ${show(path)} cannot be read; check the path.`, { cause });
  }
}

function parseTokens(path: string, text: string): readonly ApiToken[] {
  const tokens = text.split("\n").flatMap((line, index) => {
    if (line.trim() === "" || line.trimStart().startsWith("#")) return [];
    const token = tokenOf(line);
    if (token !== null) return [token];
    throw new SessionError(
      "INVALID_OPTION",
      `Line ${index + 1} of the token file ${show(path)} is no line of skein token; make a new one with it.`,
    );
  });
  if (tokens.length > 0) return tokens;
  throw new SessionError("INVALID_OPTION", `The token file ${show(path)} has no token; make one with skein token.`);
}

/** Whatever cannot be read makes the line a bad one: it may be what was to keep someone out. */
function tokenOf(line: string): ApiToken | null {
  try {
    const read = JSON.parse(line) as CallerInit & { readonly hash: unknown };
    readCaller(read);
    const { hash } = read;
    if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash)) return null;
    return Object.keys(read).every((name) => FIELDS.has(name)) ? { ...read, hash } : null;
  } catch {
    return null;
  }
}
