import { createHash, timingSafeEqual } from "node:crypto";
import { SessionError } from "../../../session/errors.ts";
import { type ApiToken, hashToken } from "../../api-token.ts";
import { type KnownCaller, readCaller } from "../../read-caller.ts";

/** A token that the table knows. */
export interface KeptToken extends KnownCaller {
  readonly digest: Buffer;
  /** The same for a token of which everything is the same, in whichever table. */
  readonly key: string;
}

/** Who may come in, by the hashes of their tokens. */
export class TokenTable {
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
