import { createHash, timingSafeEqual } from "node:crypto";
import { type ApiToken, type TokenSource, hashToken } from "../../api-token.ts";
import { ALL_RIGHTS, type Authenticate } from "../../caller-init.ts";
import { type KnownCaller, readCaller } from "../../read-caller.ts";
import type { Admission } from "./admission.ts";
import { HttpError } from "../http-error.ts";
import type { Caller } from "../server-services.ts";
import { SessionError } from "../../../session/errors.ts";

const LOCAL: Caller = Object.freeze({ userId: "local", admin: true, may: ALL_RIGHTS });
const OPEN: Admission = { caller: LOCAL, holds: () => true };

/** What says who someone is; null for what a server does without. */
export interface AuthenticatorInit {
  readonly tokens: readonly ApiToken[] | TokenSource | null;
  readonly authenticate: Authenticate | null;
  /** Logs what went wrong with the tokens of a source. */
  readonly report: (error: unknown) => void;
}

/**
 * Tells who a request comes from.
 *
 * - A token of the table counts first, then what the application's own sign-in says. Without both, everyone is `local`.
 * - While the table cannot be known, nobody comes in by a token.
 */
export class Authenticator {
  readonly #init: AuthenticatorInit;
  #read: readonly ApiToken[] | null = null;
  #table: TokenTable | null = null;

  /** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a token that makes no sense. */
  constructor(init: AuthenticatorInit) {
    this.#init = init;
    const { tokens } = init;
    if (tokens !== null && !("current" in tokens)) this.#take(tokens);
  }

  /** Whether anyone is asked who they are. */
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
    const known = authenticate === null ? null : await ask(authenticate, request);
    if (known !== null) return admitted(known, () => true);
    if (tokens !== null && table === null) {
      throw new HttpError("TOKENS_UNAVAILABLE", "The server cannot tell now whose token is good; try again later.");
    }
    if (given === undefined) throw unauthorized("UNAUTHORIZED", "Say who you are: Authorization: Bearer <token>.");
    throw unauthorized("UNAUTHORIZED", "The token is not one of this server's.");
  }

  /** The table that counts now; null where there is none, or none can be known. */
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
    // A table that cannot be made must not leave the one before it in force.
    this.#table = null;
    if (tokens !== null) this.#table = new TokenTable(tokens);
  }
}

function admitted({ caller, expiresAtMs }: KnownCaller, isKnown: () => boolean): Admission {
  const isOver = (): boolean => Date.now() >= expiresAtMs;
  if (isOver()) throw unauthorized("TOKEN_EXPIRED", "The token has expired; get a new one.");
  return { caller, holds: () => !isOver() && isKnown() };
}

/** What an application says is checked as strictly as what an operator writes, as a mistake in it opens the door. */
async function ask(authenticate: Authenticate, request: Request): Promise<KnownCaller | null> {
  try {
    const init = await authenticate(request);
    if (init === null) return null;
    if (typeof init !== "object") throw new TypeError("It gave neither a caller nor null.");
    return readCaller(init);
  } catch (cause) {
    // Wrapped, as an error of ours that it passes on would be answered as one of the request.
    const why = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    throw new Error(`authenticate failed, so nobody came in: ${why}`, { cause });
  }
}

function unauthorized(code: "UNAUTHORIZED" | "TOKEN_EXPIRED", message: string): HttpError {
  const error = code === "TOKEN_EXPIRED" ? ' error="invalid_token"' : "";
  return new HttpError(code, message, {
    headers: { "www-authenticate": `Bearer realm="skein"${error && `,${error}`}` },
  });
}

/** A token that the table knows. */
interface KeptToken extends KnownCaller {
  readonly digest: Buffer;
  /** The same for a token of which everything is the same, in whichever table. */
  readonly key: string;
}

/** Who may come in, by the hashes of their tokens. */
class TokenTable {
  readonly #tokens: readonly KeptToken[];
  readonly #keys: ReadonlySet<string>;

  /** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a token that lets nobody in, or anybody. */
  constructor(tokens: readonly ApiToken[]) {
    this.#tokens = tokens.map(keep);
    this.#keys = new Set(this.#tokens.map(({ key }) => key));
  }

  /** What the table knows of a token; null for one that is none of it. */
  find(token: string): KeptToken | null {
    const digest = createHash("sha256").update(token).digest();
    let found: KeptToken | null = null;
    // All of them, whichever it is, so that the time taken tells nothing.
    for (const kept of this.#tokens) if (timingSafeEqual(kept.digest, digest)) found = kept;
    return found;
  }

  /** Whether a token is in it, and says of its user what it said. */
  has({ key }: KeptToken): boolean {
    return this.#keys.has(key);
  }
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
