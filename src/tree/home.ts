import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Where Skein keeps its files: `$SKEIN_HOME`, else `./.skein` when it exists, else `~/.skein`. */
export function skeinHome(): string {
  const given = process.env.SKEIN_HOME;
  if (given !== undefined && given !== "") return resolve(given);
  const local = resolve(".skein");
  return existsSync(local) ? local : join(homedir(), ".skein");
}

/** The directory that all session files of all projects share. */
export function defaultSessionDirectory(): string {
  return join(skeinHome(), "sessions");
}

/** The store of a program that was told of no other: an SQLite file in `skeinHome()`. */
export function defaultStoreUrl(): string {
  return `sqlite:${join(skeinHome(), "skein.db")}`;
}
