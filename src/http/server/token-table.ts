import { createHash, timingSafeEqual } from "node:crypto";
import { SessionError } from "../../session/errors.ts";
import { isTimestamp } from "../../session/header.ts";
import { checkName } from "../../session/id.ts";
import { type ApiToken, hashToken } from "../api-token.ts";
import { HttpError } from "./http-error.ts";
import { ALL_RIGHTS, type Caller } from "./server-services.ts";

interface KeptToken {
  readonly digest: Buffer;
  readonly caller: Caller;
  readonly expiresAtMs: number;
}

/** Who may come in, by the hashes of their tokens. */
export class TokenTable {
  readonly #tokens: readonly KeptToken[];

  /** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a token that lets nobody in, or anybody. */
  constructor(tokens: readonly ApiToken[]) {
    this.#tokens = tokens.map(keep);
  }

  /** @throws {HttpError} `UNAUTHORIZED` or `TOKEN_EXPIRED`. */
  callerOf(authorization: string | null): Caller {
    const given = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (given === undefined) throw unauthorized("UNAUTHORIZED", "Say who you are: Authorization: Bearer <token>.");
    const digest = createHash("sha256").update(given).digest();
    let found: KeptToken | null = null;
    // All of them, whichever it is, so that the time taken tells nothing.
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) found = token;
    if (found === null) throw unauthorized("UNAUTHORIZED", "The token is not one of this server's.");
    if (Date.now() >= found.expiresAtMs) throw unauthorized("TOKEN_EXPIRED", "The token has expired; get a new one.");
    return found.caller;
  }
}

function keep({ token, hash, userId, admin = false, expiresAt }: ApiToken): KeptToken {
  checkName(userId, "a user");
  const digest = hash ?? (typeof token === "string" && token.length >= TOKEN_CHARACTERS_MIN ? hashToken(token) : "");
  if (!/^[0-9a-f]{64}$/i.test(digest)) {
    throw invalid(
      `The token of ${userId} needs a hash of hashToken, or a token of at least ${TOKEN_CHARACTERS_MIN} characters.`,
    );
  }
  if (typeof admin !== "boolean") throw invalid(`admin of the token of ${userId} is neither true nor false.`);
  if (expiresAt !== undefined && !isTimestamp(expiresAt)) {
    throw invalid(`expiresAt of the token of ${userId} is not an ISO-8601 time with milliseconds, in UTC.`);
  }
  return {
    digest: Buffer.from(digest, "hex"),
    caller: Object.freeze({ userId, admin, may: ALL_RIGHTS }),
    expiresAtMs: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
  };
}

const TOKEN_CHARACTERS_MIN = 16;

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}

function unauthorized(code: "UNAUTHORIZED" | "TOKEN_EXPIRED", message: string): HttpError {
  const error = code === "TOKEN_EXPIRED" ? ' error="invalid_token"' : "";
  return new HttpError(code, message, {
    headers: { "www-authenticate": `Bearer realm="skein"${error && `,${error}`}` },
  });
}
