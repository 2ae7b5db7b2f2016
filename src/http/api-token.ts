import { checkArgument } from "../session/check-arguments.ts";
import { createHash, randomBytes } from "node:crypto";
import type { CallerInit } from "./caller-init.ts";

/** A token that authenticates a caller; the server keeps the hash only. */
export type ApiToken = (
  | { readonly token: string; readonly hash?: never }
  | {
      /** The result of `hashToken` for the token. */
      readonly hash: string;
      readonly token?: never;
    }
) &
  CallerInit;

/** Tokens that may change while a server runs, such as those of `openTokenFile`. */
export interface TokenSource {
  /**
   * The tokens that are valid now; null while they cannot be read, and then every token is refused.
   *
   * It is called for every request, and several times a second while streams are open, so it must not block. Returning the same
   * array means that nothing has changed.
   */
  current(): readonly ApiToken[] | null;
}

/** A new random token with 256 bits. It is shown once; keep its hash. */
export function createToken(): string {
  return `skein_${randomBytes(32).toString("base64url")}`;
}

/** The SHA-256 hash of a token, in hexadecimal. */
export function hashToken(token: string): string {
  checkArgument(typeof token === "string" && token !== "", token, "hashToken", "a token, as a text");
  return createHash("sha256").update(token).digest("hex");
}
