import { posix } from "node:path";

/** The JSON Schema of path parameters. */
export const PATH_PARAMETER = {
  type: "string",
  minLength: 1,
  description: "Path in the workspace, relative to its root.",
} as const;

/**
 * The resource key of a path: all spellings of a path have the same key, so that reads and writes of it keep their order.
 *
 * Letter case and Unicode normalization are ignored, because some file systems ignore them. An absolute path gets a different
 * key than the same path relative to the root, since only the sandbox knows its root.
 */
export function pathKey(path: string): string {
  const whole = posix.normalize(path).replace(/(?<=.)\/$/, "");
  return `path:${whole.normalize("NFC").toLowerCase()}`;
}
