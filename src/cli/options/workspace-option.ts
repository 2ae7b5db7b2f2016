import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { makeWorkspace, namedPath } from "../../stores/named-path.ts";
import type { CommandValues } from "../command.ts";

/**
 * The full path of the `--workspace` directory, which is created if missing.
 *
 * @throws {SessionError} `INVALID_OPTION` if its parent directory is missing as well and `--create` is not given.
 */
export async function workspaceAt(path: string, values: CommandValues): Promise<string> {
  const directory = namedPath(path);
  await makeWorkspace(directory, { create: values["create"] === true });
  return directory;
}

/** The full path of an existing directory. @throws {SessionError} `INVALID_OPTION` if it is missing. */
export async function existingWorkspaceAt(path: string, option: string): Promise<string> {
  const directory = resolve(path);
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() === true) return directory;
  throw new SessionError("INVALID_OPTION", `There is no directory ${show(path)}; check ${option}.`);
}
