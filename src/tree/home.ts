import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { storePathOf } from "../stores/open-store.ts";

/**
 * The directory of Skein's files: `$SKEIN_HOME`, or else `~/.skein`. Its content is trusted as the user's own, so it never
 * depends on the current directory, which may be a repository from another person.
 *
 * @throws {SessionError} `INVALID_OPTION` for a `$SKEIN_HOME` that is not an absolute path.
 */
export function skeinHome(): string {
  const given = process.env.SKEIN_HOME;
  if (given === undefined || given === "") return join(homedir(), ".skein");
  if (isAbsolute(given)) return given;
  throw new SessionError(
    "INVALID_OPTION",
    `SKEIN_HOME is ${show(given)}, a relative path, which depends on the current directory; set it to an absolute path.`,
  );
}

/** The default directory of session files, which all projects share. */
export function defaultSessionDirectory(): string {
  return join(skeinHome(), "sessions");
}

/**
 * The URL of the default store: `$SKEIN_STORE`, or else the SQLite file `skein.db` in `skeinHome()`. It is used by
 * `openManager`, `skein chat`, `skein list`, the server with its studio, and the sessions of an editor.
 */
export function defaultStoreUrl(): string {
  const given = process.env.SKEIN_STORE;
  return given !== undefined && given !== "" ? given : `sqlite:${chosenStorePath()}`;
}

/** Whether a URL names the store file that Skein has chosen, whose missing directory is created. */
export function isChosenStore(url: string): boolean {
  const path = storePathOf(url);
  return path !== null && resolve(path) === chosenStorePath();
}

function chosenStorePath(): string {
  return resolve(skeinHome(), "skein.db");
}
