import { homedir } from "node:os";
import { join } from "node:path";

/** Replaces a leading `~/` in a path with the user's home directory. */
export function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}
