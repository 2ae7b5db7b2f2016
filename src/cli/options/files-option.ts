import { SessionError } from "../../index.ts";
import type { SessionFilesOptions } from "../../lifecycle/checkpoints/session-files.ts";
import { type CommandOption, type CommandValues, textOption } from "../command.ts";
import { workspaceAt } from "./workspace-option.ts";

/** The option that says where the files of a session are. */
export const WORKSPACE_OPTION: CommandOption = {
  value: "DIRECTORY",
  what: "where its files are (default: where the session's tools act)",
};

/**
 * Where the files of a session are, as `--files` and `--workspace` say; null where files are left out.
 *
 * @throws {SessionError} `INVALID_OPTION` for a directory that is not there, or that nobody asked for files of.
 */
export async function filesPlace(values: CommandValues): Promise<SessionFilesOptions["placeOf"] | null> {
  const given = textOption(values, "workspace");
  if (values["files"] !== true) {
    if (given === undefined) return null;
    throw new SessionError("INVALID_OPTION", "--workspace says where the files are; add --files.");
  }
  const directory = given === undefined ? null : await workspaceAt(given);
  return ({ sandbox }) => (directory === null ? sandbox : { backend: "local", spec: directory });
}
