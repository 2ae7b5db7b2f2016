import { access } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { openStore, SessionError, type SessionStore } from "../index.ts";

/**
 * Opens a store that must be there already: a mistyped path would otherwise make an empty one, in which all is well.
 *
 * @throws {SessionError} `INVALID_OPTION` when there is no such file or directory, or the URL names no store.
 */
export async function openExistingStore(url: string, advice = "check the path"): Promise<SessionStore> {
  if (await storeExists(url)) return openStore(url);
  throw new SessionError("INVALID_OPTION", `There is no store at ${filePathOf(url)}; ${advice}.`);
}

/** Whether a store is there, as far as a look at the file system tells: one that is no file counts as there. */
export async function storeExists(url: string): Promise<boolean> {
  const path = filePathOf(url);
  return path === null || isThere(path);
}

/** Refuses a store that is kept in files below a directory that is not there. @throws {SessionError} `INVALID_OPTION`. */
export async function requireStoreDirectory(url: string): Promise<void> {
  const path = filePathOf(url);
  if (path === null || (await isThere(dirname(resolve(path))))) return;
  throw new SessionError(
    "INVALID_OPTION",
    `There is no directory ${dirname(resolve(path))} for the store; check --store, or let --create make it.`,
  );
}

/** The path of a store that is kept in files, or null. */
function filePathOf(url: string): string | null {
  const [, place] = /^(?:jsonl|sqlite):(.+)$/s.exec(url) ?? [];
  if (place === undefined || place.includes("\0")) return null;
  return place.startsWith("///") ? place.slice(2) : place;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
