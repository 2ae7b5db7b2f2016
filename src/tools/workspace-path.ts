import { posix } from "node:path";

/** What a path of the workspace is told to models as. */
export const PATH_PARAMETER = {
  type: "string",
  minLength: 1,
  description: "Path in the workspace, relative to its root.",
} as const;

/**
 * The resource key of a path: spellings of one path have one key, so that reads and writes of it keep their order.
 *
 * Letter case and Unicode form are left out, because on some systems they do not make another file. An absolute path has
 * a key of its own, since only the sandbox knows where its root is.
 */
export function pathKey(path: string): string {
  const whole = posix.normalize(path).replace(/(?<=.)\/$/, "");
  return `path:${whole.normalize("NFC").toLowerCase()}`;
}
