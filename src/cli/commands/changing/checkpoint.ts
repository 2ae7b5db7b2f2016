import { type Command, textOption } from "../../command.ts";
import { checkpointWithFiles } from "../../../lifecycle/checkpoints/session-files.ts";
import { filesPlace, WORKSPACE_OPTION } from "../../options/files-option.ts";
import { openManager } from "../../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Makes a checkpoint. */
export const checkpoint: Command = {
  name: "checkpoint",
  summary: "Mark where a session stands, to come back to it.",
  arguments: [SESSION_ARGUMENT],
  options: {
    note: { value: "TEXT", what: "what to remember about it" },
    files: { what: "hold the files of its directory, too" },
    workspace: WORKSPACE_OPTION,
  },
  examples: [
    { line: 'skein checkpoint last --note "tests are green"', what: "mark where the latest session stands" },
    { line: "skein checkpoint last --files", what: "and hold its files as they are" },
  ],
  json: {
    checkpoint:
      "the checkpoint: id, sessionId, version, leafId, createdAt, parentCheckpointId, metadata, and sandboxSnapshot where it holds files",
  },
  store: "existing",
  async run(context) {
    const note = textOption(context.values, "note");
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = openManager(store);
    const { header } = await findSession(store, context.positionals[0] as string);
    const init = note === undefined ? {} : { metadata: { note } };
    const made = await (placeOf === null
      ? manager.checkpoint(header.id, init)
      : checkpointWithFiles(manager, header.id, { ...init, placeOf }));
    const files = placeOf === null ? "" : ", with its files";
    if (context.json) context.printJson({ checkpoint: made });
    else context.print(`Checkpoint ${made.id}: session ${header.id} at version ${made.version}${files}.`);
    return 0;
  },
};
