import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { makeWorkspace, namedPath } from "../../stores/named-path.ts";
import type { CommandValues } from "../command.ts";

/**
 * The full path of the directory to work in that `--workspace` names; it is made where only its last part is missing.
 *
 * @throws {SessionError} `INVALID_OPTION` when what is above it is missing, too, unless `--create` is given.
 */
export async function workspaceAt(path: string, values: CommandValues): Promise<string> {
  const directory = namedPath(path);
  await makeWorkspace(directory, { create: values["create"] === true });
  return directory;
}

/** The full path of a directory that already has files to work on. @throws {SessionError} `INVALID_OPTION` when it is not there. */
export async function existingWorkspaceAt(path: string, option: string): Promise<string> {
  const directory = resolve(path);
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory() === true) return directory;
  throw new SessionError("INVALID_OPTION", `There is no directory ${show(path)} to work in; check ${option}.`);
}
