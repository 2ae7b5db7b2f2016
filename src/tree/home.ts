import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { storePathOf } from "../stores/open-store.ts";

/**
 * Where Skein keeps its files: `$SKEIN_HOME`, else `~/.skein`. What lies there counts as the user's own, so it never depends
 * on the current directory, which may be a repository that someone else wrote.
 *
 * @throws {SessionError} `INVALID_OPTION` for a `$SKEIN_HOME` that is not an absolute path.
 */
export function skeinHome(): string {
  const given = process.env.SKEIN_HOME;
  if (given === undefined || given === "") return join(homedir(), ".skein");
  if (isAbsolute(given)) return given;
  throw new SessionError(
    "INVALID_OPTION",
    `SKEIN_HOME is ${show(given)}, which means another directory wherever a program starts; set it to an absolute path.`,
  );
}

/** The directory that all session files of all projects share. */
export function defaultSessionDirectory(): string {
  return join(skeinHome(), "sessions");
}

/**
 * The store of every program that names no other: `$SKEIN_STORE`, else the SQLite file `skein.db` in `skeinHome()`. It is
 * the one of `openManager`, of `skein chat` and `skein list`, of the server with its studio, and of an editor's sessions.
 */
export function defaultStoreUrl(): string {
  const given = process.env.SKEIN_STORE;
  return given !== undefined && given !== "" ? given : `sqlite:${chosenStorePath()}`;
}

/** Whether a URL names the store that Skein itself has chosen, so that its directory is made where it is missing. */
export function isChosenStore(url: string): boolean {
  const path = storePathOf(url);
  return path !== null && resolve(path) === chosenStorePath();
}

function chosenStorePath(): string {
  return resolve(skeinHome(), "skein.db");
}
