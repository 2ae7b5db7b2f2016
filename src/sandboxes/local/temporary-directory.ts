import { lstat, mkdir, readFile, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PRIVATE_DIRECTORY, writePrivateFile } from "../../internal/private-file.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { wrapFailure, isMissing } from "./file-failure.ts";
import { removeTree } from "./file-tree.ts";
import { pinIfExists } from "./pinned-directory.ts";

const ID = /^temporary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const WORKSPACE = "workspace";
const RECORD = "sandbox.json";

/** How many sandboxes of this process use a directory. */
const users = new Map<string, number>();

/** A temporary directory of a sandbox, inside of a holder directory with a record of its id. */
export interface TemporaryDirectory {
  readonly id: string;
  /** The root for the sandbox's files. */
  readonly root: string;
}

/** Creates a directory that only this user can access. */
export async function makeTemporaryDirectory(): Promise<TemporaryDirectory> {
  const id = `temporary-${uuidv7()}`;
  const holder = await holderOf(id);
  const root = join(holder, WORKSPACE);
  // Created one by one, not recursively: mkdir then fails if another user has already created one of them.
  await mkdir(holder, PRIVATE_DIRECTORY);
  await mkdir(root, PRIVATE_DIRECTORY);
  // Written last: a directory with a record is complete.
  await writePrivateFile(join(holder, RECORD), JSON.stringify({ id, createdAt: new Date().toISOString() }), {
    flag: "wx",
  });
  return { id, root };
}

/** Whether a value has the form of a temporary directory's id. */
export function isTemporaryId(id: unknown): id is string {
  return typeof id === "string" && ID.test(id);
}

/** The directory with this id; null if it does not exist, or was not created by a sandbox of this user. */
export async function findTemporaryDirectory(id: string): Promise<TemporaryDirectory | null> {
  if (!isTemporaryId(id)) return null;
  const holder = await holderOf(id);
  try {
    const stats = await lstat(holder);
    const own = process.getuid === undefined || stats.uid === process.getuid();
    if (!stats.isDirectory() || !own || (stats.mode & 0o077) !== 0) return null;
    const record: unknown = JSON.parse(await readFile(join(holder, RECORD), "utf8"));
    if ((record as { id?: unknown } | null)?.id !== id) return null;
    const root = join(holder, WORKSPACE);
    return (await lstat(root)).isDirectory() ? { id, root } : null;
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Removes a temporary directory recursively; false if it did not exist. */
export async function removeTemporaryDirectory(id: string): Promise<boolean> {
  if ((await findTemporaryDirectory(id)) === null) return false;
  const holder = await holderOf(id);
  await using parent = await pinIfExists(join(holder, ".."));
  return parent !== null && (await removeTree(parent, nameOf(id)));
}

/** Increments the count of this process's sandboxes that use the directory. */
export function useTemporaryDirectory(id: string): void {
  users.set(id, (users.get(id) ?? 0) + 1);
}

/** Decrements the count; at 0, removes the directory. */
export async function leaveTemporaryDirectory(id: string): Promise<void> {
  const left = (users.get(id) ?? 1) - 1;
  if (left > 0) users.set(id, left);
  else {
    users.delete(id);
    await wrapFailure("remove its directory", () => removeTemporaryDirectory(id));
  }
}

/** Whether a sandbox of this process uses the directory. */
export function isTemporaryDirectoryUsed(id: string): boolean {
  return users.has(id);
}

async function holderOf(id: string): Promise<string> {
  return join(await realpath(tmpdir()), nameOf(id));
}

function nameOf(id: string): string {
  return `skein-sandbox-${id.replace("temporary-", "")}`;
}
