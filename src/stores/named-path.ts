import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { PRIVATE_DIRECTORY } from "../internal/private-file.ts";
import { SessionError, show } from "../session/errors.ts";
import { expandHome } from "./expand-home.ts";
import { sandboxBackend } from "../session/sandbox/sandbox-backends.ts";

/*
 * Directories of paths that users name: the last part is created, missing parents are not. Otherwise a mistyped path would
 * create directories in another place, and all sessions would seem to be lost. Paths that Skein chooses are always created.
 */

/** Options for creating the parents of a path that a user has named. */
export interface NamedPathOptions {
  /** Also create missing parents. Undefined if the user has no option for that; then the error does not mention it. */
  readonly create?: boolean;
  /** The name of the thing in the error message, such as `the store`. */
  readonly what: string;
}

/** The absolute path for a path that may begin with `~/`. @throws {SessionError} `INVALID_OPTION` for a value that is no path. */
export function namedPath(path: string): string {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw new SessionError("INVALID_OPTION", `The path is ${show(path)}; give a path as a text.`);
  }
  return resolve(expandHome(path));
}

/**
 * Creates the directory of a named file if `create` is true; otherwise checks that the directory exists.
 *
 * @throws {SessionError} `INVALID_OPTION` for a missing directory, `STORE_FAILED` if it cannot be created.
 */
export async function makeParent(path: string, { create, what }: NamedPathOptions): Promise<void> {
  const directory = dirname(path);
  if (create === true) return void (await make(directory, { ...PRIVATE_DIRECTORY, recursive: true }, what));
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error)) return;
  // After other errors, such as a missing permission, the directory may still exist.
  if (found.code !== "ENOENT" && found.code !== "ENOTDIR") return;
  const advice = create === undefined ? "make it first" : "let --create make it (in code, create: true)";
  throw new SessionError(
    "INVALID_OPTION",
    `There is no directory ${show(directory)} for ${what}; check the path, or ${advice}.`,
  );
}

/**
 * Creates a workspace, the directory in which tools act, if it is missing. If this program is root and commands can be
 * isolated, the workspace belongs to a new account, which the commands run as.
 *
 * @throws {SessionError} `INVALID_OPTION` for a missing parent or a file, `STORE_FAILED` if it cannot be created.
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
  if (process.getuid?.() === 0) await makeForCommands(path);
  await make(path, { recursive: true }, "the workspace");
}

/** Lets the local sandbox create a directory, because it chooses the account of the commands. */
async function makeForCommands(path: string): Promise<void> {
  try {
    const sandbox = await (await sandboxBackend("local")).open({ workingDir: path, isolation: "required" });
    await sandbox.close();
  } catch {
    // Commands cannot be isolated here, so they run as root.
  }
}

async function make(path: string, options: Parameters<typeof mkdir>[1], what: string): Promise<void> {
  try {
    await mkdir(path, options);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new SessionError("STORE_FAILED", `The directory ${show(path)} of ${what} cannot be created (${code}).`, {
      cause,
    });
  }
}
