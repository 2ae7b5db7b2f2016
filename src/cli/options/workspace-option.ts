import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";

/**
 * The full path of the directory to work in that `--workspace` names, or whatever else the caller says.
 *
 * @throws {SessionError} `INVALID_OPTION` when it is not there.
 */
export async function workspaceAt(path: string, option = "--workspace"): Promise<string> {
  const directory = resolve(path);
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() === true) return directory;
  throw new SessionError("INVALID_OPTION", `There is no directory ${show(path)} to work in; check ${option}.`);
}
