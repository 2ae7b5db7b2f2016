import { createHash, timingSafeEqual } from "node:crypto";
import { type ApiToken, type TokenSource, hashToken } from "../../api-token.ts";
import { ALL_RIGHTS, type Authenticate, type CallerRights } from "../../caller-init.ts";
import { type KnownCaller, readCaller } from "../../read-caller.ts";
import { HttpError } from "../http-error.ts";
import type { Caller } from "../server-services.ts";
import { isObject } from "../../../session/check-arguments.ts";
import { SessionError } from "../../../session/errors.ts";

const LOCAL: Caller = Object.freeze({ userId: "local", admin: true, may: ALL_RIGHTS });
const OPEN: Admission = { caller: LOCAL, holds: () => true };

/** How callers authenticate; null disables the method. */
export interface AuthenticatorInit {
  readonly tokens: readonly ApiToken[] | TokenSource | null;
  readonly authenticate: Authenticate | null;
  /** Logs an error of a token source. */
  readonly report: (error: unknown) => void;
}

/**
 * Identifies the caller of a request.
 *
 * - A token in the table has priority, then the application's own `authenticate`. Without both, every caller is `local`.
 * - While the token source is unavailable, no token is accepted.
 */
export class Authenticator {
  readonly #init: AuthenticatorInit;
  #read: readonly ApiToken[] | null = null;
  #table: TokenTable | null = null;

  /** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for an invalid token. */
  constructor(init: AuthenticatorInit) {
    this.#init = init;
    const { tokens } = init;
    if (tokens !== null) checkTokens(tokens);
    if (tokens !== null && !("current" in tokens)) this.#take(tokens);
  }

  /** Whether callers must authenticate. */
  get guarded(): boolean {
    return this.#init.tokens !== null || this.#init.authenticate !== null;
  }

  /** @throws {HttpError} `UNAUTHORIZED`, `TOKEN_EXPIRED` or `TOKENS_UNAVAILABLE`. */
  async identify(request: Request): Promise<Admission> {
    const { tokens, authenticate } = this.#init;
    if (tokens === null && authenticate === null) return OPEN;
    const table = this.#currentTable();
    const given = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    const kept = given === undefined ? null : (table?.find(given) ?? null);
    if (kept !== null) return admitted(kept, () => this.#currentTable()?.has(kept) === true);
    const known = authenticate === null ? null : await callAuthenticate(authenticate, request);
    if (known !== null) return admitted(known, () => true);
    if (tokens !== null && table === null) {
      throw new HttpError("TOKENS_UNAVAILABLE", "The server cannot check tokens at the moment; retry later.");
    }
    if (given === undefined)
      throw unauthorized("UNAUTHORIZED", "Authenticate with the header Authorization: Bearer <token>.");
    throw unauthorized("UNAUTHORIZED", "The server does not know this token.");
  }

  /** The current token table; null if there is none, or if the source is unavailable. */
  #currentTable(): TokenTable | null {
    const { tokens, report } = this.#init;
    if (tokens === null || !("current" in tokens)) return this.#table;
    try {
      this.#take(tokens.current());
      return this.#table;
    } catch (error) {
      report(error);
      return null;
    }
  }

  #take(tokens: readonly ApiToken[] | null): void {
    if (tokens === this.#read) return;
    this.#read = tokens;
    // If the new table is invalid, the old one must not stay in force.
    this.#table = null;
    if (tokens !== null) this.#table = new TokenTable(tokens);
  }
}

function admitted({ caller, expiresAtMs }: KnownCaller, isKnown: () => boolean): Admission {
  const isOver = (): boolean => Date.now() >= expiresAtMs;
  if (isOver()) throw unauthorized("TOKEN_EXPIRED", "The token has expired; get a new one.");
  return { caller, holds: () => !isOver() && isKnown() };
}

/**
 * Calls the application's `authenticate`, and checks its result as strictly as configured tokens: a mistake in it would grant
 * access.
 */
async function callAuthenticate(authenticate: Authenticate, request: Request): Promise<KnownCaller | null> {
  try {
    const init = await authenticate(request);
    if (init === null) return null;
    if (typeof init !== "object") throw new TypeError("It returned neither a caller nor null.");
    return readCaller(init);
  } catch (cause) {
    // Wrapped, because a `SessionError` thrown by the application would be answered as an error of the request.
    const why = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    throw new Error(`authenticate failed, so the request was refused: ${why}`, { cause });
  }
}

function unauthorized(code: "UNAUTHORIZED" | "TOKEN_EXPIRED", message: string): HttpError {
  const error = code === "TOKEN_EXPIRED" ? ' error="invalid_token"' : "";
  return new HttpError(code, message, {
    headers: { "www-authenticate": `Bearer realm="skein"${error && `,${error}`}` },
  });
}

/** A token in the table. */
interface KeptToken extends KnownCaller {
  readonly digest: Buffer;
  /** Equal for tokens with equal contents, also in different tables. */
  readonly key: string;
}

/** The known callers, by the hashes of their tokens. */
class TokenTable {
  readonly #tokens: readonly KeptToken[];
  readonly #keys: ReadonlySet<string>;

  /** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a token that could match no caller or any. */
  constructor(tokens: readonly ApiToken[]) {
    this.#tokens = tokens.map(keep);
    this.#keys = new Set(this.#tokens.map(({ key }) => key));
  }

  /** Looks up a token; null if it is not in the table. */
  find(token: string): KeptToken | null {
    const digest = createHash("sha256").update(token).digest();
    let found: KeptToken | null = null;
    // Compares with all tokens, also after a match, so that the duration reveals nothing.
    for (const kept of this.#tokens) if (timingSafeEqual(kept.digest, digest)) found = kept;
    return found;
  }

  /** Whether this table has an equal token with the same caller. */
  has({ key }: KeptToken): boolean {
    return this.#keys.has(key);
  }
}

/** @throws {SessionError} `INVALID_OPTION` unless it is a list of objects, or a source of one. Shows no value, which may be a token. */
function checkTokens(tokens: readonly ApiToken[] | TokenSource): void {
  const isList = Array.isArray(tokens) && tokens.every((token) => isObject(token));
  if (isList || (isObject(tokens) && typeof tokens.current === "function")) return;
  throw new SessionError(
    "INVALID_OPTION",
    "tokens is no list of tokens, and no source of them, such as openTokenFile gives.",
  );
}

function keep({ token, hash, ...init }: ApiToken): KeptToken {
  const known = readCaller(init);
  const digest = hash ?? (typeof token === "string" && token.length >= TOKEN_CHARACTERS_MIN ? hashToken(token) : "");
  if (!/^[0-9a-f]{64}$/i.test(digest)) {
    throw new SessionError(
      "INVALID_OPTION",
      `The token of ${init.userId} needs a hash of hashToken, or a token of at least ${TOKEN_CHARACTERS_MIN} characters.`,
    );
  }
  const { userId, admin, may } = known.caller;
  const key = JSON.stringify([digest.toLowerCase(), userId, admin, may.approve, may.run, may.files, init.expiresAt]);
  return { ...known, digest: Buffer.from(digest, "hex"), key };
}

const TOKEN_CHARACTERS_MIN = 16;

/** An authenticated caller, and whether the credentials are still valid. */
export interface Admission {
  readonly caller: Caller;
  /** Whether the caller's credentials are valid now. Streams end when their credentials become invalid. */
  holds(): boolean;
}

const DESCRIPTIONS: Readonly<Record<keyof CallerRights, string>> = {
  run: "start, steer or cancel runs",
  approve: "answer the questions of runs",
  files: "use the files in checkpoints",
};

/** @throws {HttpError} `FORBIDDEN` for a caller without the right. */
export function checkRight({ may }: Caller, right: keyof CallerRights): void {
  if (!may[right])
    throw new HttpError("FORBIDDEN", `You may not ${DESCRIPTIONS[right]}: you do not have the right ${right}.`);
}
