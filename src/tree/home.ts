import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { storePathOf } from "../stores/store-path.ts";

/**
 * The directory of Skein's files: `$SKEIN_HOME`, or else `~/.skein`. Its content is trusted as the user's own, so it never
 * depends on the current directory, which may be a repository from another person.
 *
 * @throws {SessionError} `INVALID_OPTION` if `$SKEIN_HOME`, or the home directory of the user, is not an absolute path.
 */
export function skeinHome(): string {
  const given = process.env.SKEIN_HOME;
  const isGiven = given !== undefined && given !== "";
  // With an empty or relative HOME, the home directory of the user would be the current directory, or below it.
  const home = isGiven ? given : homedir();
  if (isAbsolute(home)) return isGiven ? home : join(home, ".skein");
  throw new SessionError(
    "INVALID_OPTION",
    `${isGiven ? "SKEIN_HOME" : "HOME"} is ${show(home)}, which depends on the current directory; set ${isGiven ? "it" : "HOME or SKEIN_HOME"} to an absolute path.`,
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
