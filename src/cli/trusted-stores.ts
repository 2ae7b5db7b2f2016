import { existsSync } from "node:fs";
import { lstat, readFile, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { FileLock } from "../internal/file-lock.ts";
import { makePrivateDirectory, writePrivateFile } from "../internal/private-file.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";
import { skeinHome } from "../tree/home.ts";

const FORMAT_VERSION = 1;
const LOCK_MS_MAX = 10_000;
/** The permission bits that let a group or others change the list or its directory. */
const WRITE_BY_OTHERS = 0o022;

/** A store in a file or directory that its user trusts. */
export interface TrustedStore {
  /** The path without links. */
  readonly path: string;
  /** The id that is stored in the store; another store at the same path has a different one. */
  readonly id: string;
}

/** Whether the user trusts this store. A list that other accounts could have written counts as empty. */
export async function isTrustedStore(store: TrustedStore): Promise<boolean> {
  return (await readStores(await ownDirectory())).some(({ path, id }) => path === store.path && id === store.id);
}

/**
 * Adds a store to the user's trusted stores, in place of an earlier one at the same path.
 *
 * @throws {SessionError} `INVALID_OPTION` if other accounts may write to the directory of the list, `SESSION_BUSY`
 * while another process has the list locked, `DAMAGED` for an unreadable list.
 */
export async function trustStore({ path, id }: TrustedStore): Promise<void> {
  await makePrivateDirectory(listDirectory());
  const directory = await ownDirectory();
  if (directory === null) {
    const text = `The directory ${show(listDirectory())} can be written by other accounts; set SKEIN_HOME to a private directory.`;
    throw new SessionError("INVALID_OPTION", text);
  }
  const file = join(directory, "stores.json");
  const lock = new FileLock(`${file}.lock`);
  const holder = await lock.acquire(LOCK_MS_MAX);
  if (holder !== null) {
    throw new SessionError("SESSION_BUSY", `${file} is in use by process ${holder.pid}; try again later.`);
  }
  try {
    // Drops stores that no longer exist, so that the list does not grow without a limit; a new store at the same path has
    // another id.
    const others = (await readStores(directory)).filter((store) => store.path !== path && existsSync(store.path));
    const text = JSON.stringify({ version: FORMAT_VERSION, stores: [...others, { path, id }] }, null, 2);
    await replace(file, `${text}\n`);
  } finally {
    await lock.release();
  }
}

function listDirectory(): string {
  return join(skeinHome(), "trusted");
}

/** The directory of the list; null if it is missing or other accounts may write to it. */
async function ownDirectory(): Promise<string | null> {
  const directory = listDirectory();
  const found = await lstat(directory).catch(() => null);
  return found?.isDirectory() === true && isOwn(found) ? directory : null;
}

async function readStores(directory: string | null): Promise<readonly TrustedStore[]> {
  if (directory === null) return [];
  const file = join(directory, "stores.json");
  const found = await lstat(file).catch(() => null);
  if (found?.isFile() !== true || !isOwn(found)) return [];
  let list: { readonly version?: unknown; readonly stores?: unknown };
  try {
    list = JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw damaged(file, cause);
  }
  if (list?.version !== FORMAT_VERSION || !Array.isArray(list.stores)) throw damaged(file);
  return list.stores as readonly TrustedStore[];
}

function isOwn({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean {
  if (process.getuid === undefined) return true;
  return uid === process.getuid() && (mode & WRITE_BY_OTHERS) === 0;
}

function damaged(file: string, cause?: unknown): SessionError {
  const text = `${file}, the list of your stores, cannot be read; repair it, or delete it and trust your stores again with --trust-store.`;
  return new SessionError("DAMAGED", text, cause === undefined ? undefined : { cause });
}

async function replace(file: string, text: string): Promise<void> {
  const made = `${file}.${uuidv7()}.tmp`;
  try {
    await writePrivateFile(made, text, { flag: "wx", flush: true });
    await rename(made, file);
  } catch (error) {
    await unlink(made).catch(() => {});
    throw error;
  }
}
