import { createHash, randomBytes } from "node:crypto";

/** A token that lets someone in; the server keeps the hash only. */
export type ApiToken = (
  | { readonly token: string; readonly hash?: never }
  | {
      /** What `hashToken` made of it. */
      readonly hash: string;
      readonly token?: never;
    }
) & {
  readonly userId: string;
  /** May see and change everyone's sessions (default: false). */
  readonly admin?: boolean;
  /** From this time on it lets nobody in any more. */
  readonly expiresAt?: string;
};

/** A new token that nobody can guess. It is shown once; keep its hash. */
export function createToken(): string {
  return `skein_${randomBytes(32).toString("base64url")}`;
}

/** The SHA-256 hash of a token, in hexadecimal. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
