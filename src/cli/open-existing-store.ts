import { access } from "node:fs/promises";
import { openStore, SessionError, type SessionStore } from "../index.ts";

/**
 * Opens a store that must be there already: a mistyped path would otherwise make an empty one, in which all is well.
 *
 * @throws {SessionError} `INVALID_OPTION` when there is no such file or directory, or the URL names no store.
 */
export async function openExistingStore(url: string, advice = "check the path"): Promise<SessionStore> {
  const path = filePathOf(url);
  if (path !== null) {
    try {
      await access(path);
    } catch (cause) {
      throw new SessionError("INVALID_OPTION", `There is no store at ${path}; ${advice}.`, { cause });
    }
  }
  return openStore(url);
}

/** The path of a store that is kept in files, or null. */
function filePathOf(url: string): string | null {
  const [, place] = /^(?:jsonl|sqlite):(.+)$/s.exec(url) ?? [];
  if (place === undefined || place.includes("\0")) return null;
  return place.startsWith("///") ? place.slice(2) : place;
}
