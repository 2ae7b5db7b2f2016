import { SessionError, show } from "../errors.ts";

const hidden = new Set<string>();

/**
 * Hides a file or directory, by its absolute path, from all sandboxes of this process, even if it is inside of their working
 * directory: neither isolated commands nor file methods can access it. Stores hide their files when they are opened; applications
 * hide their other secrets.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid path.
 */
export function hideFromSandboxes(path: string): void {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw new SessionError("INVALID_OPTION", `${show(path)} cannot be hidden from sandboxes; give an absolute path.`);
  }
  hidden.add(path);
}

/** All hidden paths. */
export function pathsHiddenFromSandboxes(): readonly string[] {
  return [...hidden];
}
