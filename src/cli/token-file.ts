import { readFile } from "node:fs/promises";
import { writePrivateFile } from "../internal/private-file.ts";
import type { ApiToken } from "../http/api-token.ts";
import { SessionError } from "../index.ts";
import { show } from "../session/errors.ts";

/** A token as a token file holds it: by its hash alone. */
export interface HashedToken {
  readonly hash: string;
  readonly userId: string;
  readonly admin?: boolean;
  readonly expiresAt?: string;
}

/** Adds a line for a token to a file that only its owner can read; the file is made if it is not there. */
export async function addToTokenFile(path: string, token: HashedToken): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(token)}\n`, { flag: "a" });
}

/**
 * The tokens of a file: one JSON object on each line, as `skein token` prints it; blank lines and those that begin with #
 * say nothing.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the line, and nothing of what is in it.
 */
export async function readTokenFile(path: string): Promise<readonly ApiToken[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new SessionError("INVALID_OPTION", `The token file ${show(path)} cannot be read; check the path.`, { cause });
  }
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

function tokenOf(line: string): HashedToken | null {
  let read: unknown;
  try {
    read = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof read !== "object" || read === null) return null;
  const { hash, userId, admin, expiresAt } = read as Record<string, unknown>;
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash) || typeof userId !== "string") return null;
  // A token that was to end must not live on because its end cannot be read.
  if (expiresAt !== undefined && (typeof expiresAt !== "string" || Number.isNaN(Date.parse(expiresAt)))) return null;
  if (admin !== undefined && typeof admin !== "boolean") return null;
  return { hash, userId, ...(admin !== undefined && { admin }), ...(expiresAt !== undefined && { expiresAt }) };
}
