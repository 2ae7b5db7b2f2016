import type { CallerInit } from "../../../http/caller-init.ts";
import { writePrivateFile } from "../../../internal/private-file.ts";

/** A token as a token file holds it: by its hash alone. */
export interface HashedToken extends CallerInit {
  readonly hash: string;
}

/** Adds a line for a token to a file that only its owner can read; the file is made if it is not there. */
export async function addToTokenFile(path: string, token: HashedToken): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(token)}\n`, { flag: "a" });
}
