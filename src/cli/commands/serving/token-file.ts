import type { CallerInit } from "../../../http/caller-init.ts";
import { writePrivateFile } from "../../../internal/private-file.ts";

/** A line of a token file. It holds the hash of the token, not the token. */
export interface HashedToken extends CallerInit {
  readonly hash: string;
}

/** Appends a token's line to a file that only its owner can read; the file is created if missing. */
export async function addToTokenFile(path: string, token: HashedToken): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(token)}\n`, { flag: "a" });
}
