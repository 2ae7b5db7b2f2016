import { lstat, mkdir, readFile, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PRIVATE_DIRECTORY, writePrivateFile } from "../../internal/private-file.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { doing, isMissing } from "./file-failure.ts";
import { removeTree } from "./file-tree.ts";
import { pinIfThere } from "./pinned-directory.ts";

const ID = /^temporary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const WORKSPACE = "workspace";
const RECORD = "sandbox.json";

/** How many sandboxes of this process use a directory. */
const users = new Map<string, number>();

/** A directory that a sandbox made for itself, in one that also says whose it is. */
export interface TemporaryDirectory {
  readonly id: string;
  /** The root for the sandbox's files. */
  readonly root: string;
}

/** Makes a directory that only this user can look into. */
export async function makeTemporaryDirectory(): Promise<TemporaryDirectory> {
  const id = `temporary-${uuidv7()}`;
  const holder = await holderOf(id);
  const root = join(holder, WORKSPACE);
  // Each on its own, so that one that someone else has made is refused.
  await mkdir(holder, PRIVATE_DIRECTORY);
  await mkdir(root, PRIVATE_DIRECTORY);
  // Last, so that a directory with a record is whole.
  await writePrivateFile(join(holder, RECORD), JSON.stringify({ id, createdAt: new Date().toISOString() }), {
    flag: "wx",
  });
  return { id, root };
}

/** Whether an id is of the form that a self-made directory has. */
export function isTemporaryId(id: unknown): id is string {
  return typeof id === "string" && ID.test(id);
}

/** The directory of an id; null when there is none, or it is not one that this user's sandboxes made. */
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

/** Removes a self-made directory with all in it; false when there was none. */
export async function removeTemporaryDirectory(id: string): Promise<boolean> {
  if ((await findTemporaryDirectory(id)) === null) return false;
  const holder = await holderOf(id);
  await using parent = await pinIfThere(join(holder, ".."));
  return parent !== null && (await removeTree(parent, nameOf(id)));
}

/** Counts one more sandbox of this process that uses the directory. */
export function useTemporaryDirectory(id: string): void {
  users.set(id, (users.get(id) ?? 0) + 1);
}

/** Counts one less; the last one removes the directory. */
export async function leaveTemporaryDirectory(id: string): Promise<void> {
  const left = (users.get(id) ?? 1) - 1;
  if (left > 0) users.set(id, left);
  else {
    users.delete(id);
    await doing("remove its directory", () => removeTemporaryDirectory(id));
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
