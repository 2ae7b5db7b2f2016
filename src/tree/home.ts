import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Where Skein keeps its files: `$SKEIN_HOME`, else `./.skein` when it exists, else `~/.skein`. */
export function skeinHome(): string {
  const given = process.env.SKEIN_HOME;
  const local = resolve(".skein");
  return (given === undefined || given === "") && existsSync(local) ? local : userHome();
}

/** Where Skein keeps what is a user's and of no project: `$SKEIN_HOME`, else `~/.skein`. */
export function userHome(): string {
  const given = process.env.SKEIN_HOME;
  return given !== undefined && given !== "" ? resolve(given) : join(homedir(), ".skein");
}

/** The directory that all session files of all projects share. */
export function defaultSessionDirectory(): string {
  return join(skeinHome(), "sessions");
}

/** The store of a program that was told of no other: an SQLite file in `skeinHome()`. */
export function defaultStoreUrl(): string {
  return `sqlite:${join(skeinHome(), "skein.db")}`;
}
