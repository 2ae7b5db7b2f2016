import { readFile } from "node:fs/promises";
import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { SessionError, show } from "../session/errors.ts";
import type { ApiToken, TokenSource } from "./api-token.ts";
import type { CallerInit } from "./caller-init.ts";
import { readCaller } from "./read-caller.ts";

const POLL_MS = 300;
const GRACE_MS = 60_000;
const REPORT_MS = 10_000;
const FIELDS: ReadonlySet<string> = new Set(["hash", "userId", "admin", "may", "expiresAt"]);

/** Options of a token file. */
export interface TokenFileOptions {
  /**
   * Called when the file is invalid or missing: immediately, and every ten seconds until it is valid again (default: a warning of
   * the process).
   */
  readonly onProblem?: (error: SessionError) => void;
  /** How long the last valid tokens are still accepted then (default 60 s). */
  readonly graceMs?: number;
}

const OPTIONS: KeysOf<TokenFileOptions> = { onProblem: true, graceMs: true };

/**
 * The tokens in a file, for the option `tokens` of a server.
 *
 * - An added or removed line takes effect within a second, whether the file is written in place or replaced by a rename.
 * - While the file is invalid, empty or missing, the last valid tokens are accepted for `graceMs`; then none is until the file is
 *   valid again.
 * - Disposing stops the polling of the file; the tokens then stay as they are.
 */
export interface TokenFile extends TokenSource, Disposable {}

/**
 * Reads a token file, and reads it again whenever it changes. It has one JSON object on each line, as `skein token` prints it;
 * blank lines and lines that begin with # are ignored.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the line, without quoting it.
 */
export async function openTokenFile(path: string, options: TokenFileOptions = {}): Promise<TokenFile> {
  checkOptionsOf(options, OPTIONS, "openTokenFile");
  const text = await readText(path);
  return new PolledTokenFile(path, text, parseTokens(path, text), options);
}

class PolledTokenFile implements TokenFile {
  readonly #path: string;
  readonly #onProblem: (error: SessionError) => void;
  readonly #graceMs: number;
  #text: string;
  #tokens: readonly ApiToken[];
  /** Since when the file is invalid; null while it is valid. */
  #invalidSinceMs: number | null = null;
  #reportedMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(path: string, text: string, tokens: readonly ApiToken[], options: TokenFileOptions) {
    this.#path = path;
    this.#text = text;
    this.#tokens = tokens;
    this.#onProblem = options.onProblem ?? ((error) => process.emitWarning(error.message));
    this.#graceMs = options.graceMs ?? GRACE_MS;
    this.#schedulePoll();
  }

  current(): readonly ApiToken[] | null {
    return this.#leftMs() > 0 ? this.#tokens : null;
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** How long the tokens are still accepted if the file does not change. */
  #leftMs(): number {
    if (this.#invalidSinceMs === null) return Number.POSITIVE_INFINITY;
    return this.#invalidSinceMs + this.#graceMs - performance.now();
  }

  #schedulePoll(): void {
    this.#timer = setTimeout(() => void this.#poll(), POLL_MS).unref();
  }

  /** Reads the whole file, because modification times do not distinguish two changes at the same moment. */
  async #poll(): Promise<void> {
    const timer = this.#timer;
    try {
      const text = await readText(this.#path);
      if (text !== this.#text || this.#invalidSinceMs !== null) this.#tokens = parseTokens(this.#path, text);
      this.#text = text;
      this.#invalidSinceMs = null;
    } catch (error) {
      this.#reportProblem(error as SessionError);
    }
    if (this.#timer === timer) this.#schedulePoll();
  }

  #reportProblem(cause: SessionError): void {
    const nowMs = performance.now();
    if (this.#invalidSinceMs !== null && nowMs - this.#reportedMs < REPORT_MS) return;
    this.#invalidSinceMs ??= nowMs;
    this.#reportedMs = nowMs;
    const seconds = Math.ceil(this.#leftMs() / 1000);
    const then =
      seconds > 0 ? `Its last valid tokens are accepted for ${seconds} s more.` : "No token is accepted now.";
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
      `Line ${index + 1} of the token file ${show(path)} was not made by skein token; make a new one with it.`,
    );
  });
  if (tokens.length > 0) return tokens;
  throw new SessionError("INVALID_OPTION", `The token file ${show(path)} has no token; make one with skein token.`);
}

/** Every unknown part makes the line invalid: it may be a restriction, which must not be ignored. */
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
