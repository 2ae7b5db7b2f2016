import { SessionError, show } from "../errors.ts";

const hidden = new Set<string>();

/**
 * Keeps a file or a directory, by its absolute path, from all sandboxes of this process, also where it lies among their files: neither isolated
 * commands nor file methods find it. Stores name theirs when they are opened; what else is secret, an application names.
 *
 * @throws {SessionError} `INVALID_OPTION` for what is no path.
 */
export function hideFromSandboxes(path: string): void {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw new SessionError("INVALID_OPTION", `${show(path)} cannot be hidden from sandboxes; give an absolute path.`);
  }
  hidden.add(path);
}

/** What `hideFromSandboxes` was told so far. */
export function pathsHiddenFromSandboxes(): readonly string[] {
  return [...hidden];
}
