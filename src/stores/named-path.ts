import { mkdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { PRIVATE_DIRECTORY } from "../internal/private-file.ts";
import { SessionError, show } from "../session/errors.ts";

/*
 * What a user names is made, its missing parents are not: a mistyped path would otherwise make a tree of directories
 * somewhere else, and look as if everything had been lost. What Skein chooses itself is always made.
 */

/** How far a path that a user names is made. */
export interface NamedPathOptions {
  /** Makes the parents that are missing, too; left out where whoever names it cannot ask for that. */
  readonly create?: boolean;
  /** What is named, as the error says it, such as `the store`. */
  readonly what: string;
}

/** A path in which a leading `~/` is the home of the user. */
export function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

/** The same, in full. */
export function namedPath(path: string): string {
  return resolve(expandHome(path));
}

/**
 * Makes the directory that a named file is to lie in, where `create` says so, or sees that it is there.
 *
 * @throws {SessionError} `INVALID_OPTION` for a directory that is missing, `STORE_FAILED` for one that cannot be made.
 */
export async function makeParent(path: string, { create, what }: NamedPathOptions): Promise<void> {
  const directory = dirname(path);
  if (create === true) return void (await make(directory, { ...PRIVATE_DIRECTORY, recursive: true }, what));
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error)) return;
  // What cannot be looked at may still be there.
  if (found.code !== "ENOENT" && found.code !== "ENOTDIR") return;
  const advice = create === undefined ? "make it first" : "let --create make it (in code, create: true)";
  throw new SessionError(
    "INVALID_OPTION",
    `There is no directory ${show(directory)} for ${what}; check the path, or ${advice}.`,
  );
}

/**
 * Makes the directory that tools act in, where it is missing.
 *
 * @throws {SessionError} `INVALID_OPTION` for a missing parent or a file, `STORE_FAILED` for one that cannot be made.
 */
export async function makeWorkspace(
  path: string,
  { create = false }: { readonly create?: boolean } = {},
): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) return;
  if (found !== null) {
    throw new SessionError("INVALID_OPTION", `The workspace ${show(path)} is a file; name a directory.`);
  }
  await makeParent(path, { create, what: "the workspace" });
  await make(path, { recursive: true }, "the workspace");
}

async function make(path: string, options: Parameters<typeof mkdir>[1], what: string): Promise<void> {
  try {
    await mkdir(path, options);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new SessionError("STORE_FAILED", `The directory ${show(path)} of ${what} cannot be made (${code}).`, {
      cause,
    });
  }
}
