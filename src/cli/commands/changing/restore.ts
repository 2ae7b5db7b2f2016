import { counted } from "../../counted.ts";
import type { Command } from "../../command.ts";
import { restoreWithFiles } from "../../../lifecycle/checkpoints/session-files.ts";
import { filesPlace, WORKSPACE_OPTION } from "../../options/files-option.ts";
import { openManager } from "../../open-manager.ts";

/** Goes back to a checkpoint. */
export const restore: Command = {
  name: "restore",
  summary: "Go back to a checkpoint: the session's leaf moves there, and nothing is erased.",
  details:
    "Files stay as they are. With --files, those of the session's directory become what the checkpoint holds: what is there now is held in another checkpoint first, whose id is told.",
  arguments: [{ name: "checkpoint", what: "its id, from skein checkpoints" }],
  options: { files: { what: "bring the files back that it holds, too" }, workspace: WORKSPACE_OPTION },
  examples: [
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11", what: "go on from there" },
    { line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11 --files", what: "with the files of then" },
  ],
  json: {
    sessionId: "the session's id",
    leafId: "the entry that the next one hangs on now, or null",
    turnCount: "how many turns the path has now",
    version: "how many entries the log has now",
    kept: "the checkpoint that holds the files which were there before, as in checkpoint; null without --files",
  },
  store: "existing",
  async run(context) {
    const placeOf = await filesPlace(context.values);
    await using store = await context.openStore();
    await using manager = openManager(store);
    const id = context.positionals[0] as string;
    const { state, kept } =
      placeOf === null
        ? { state: await manager.restore(id, { turns: false }), kept: null }
        : await restoreWithFiles(manager, id, { placeOf });
    const { sessionId, leafId, turnCount, version } = state;
    if (context.json) {
      context.printJson({ sessionId, leafId, turnCount, version, kept });
      return 0;
    }
    context.print(
      `Session ${sessionId} stands after ${counted(turnCount, "turn", "turns")} again; its log has ${counted(version, "entry", "entries")}.`,
    );
    if (kept !== null) context.print(`Its files are those of then; checkpoint ${kept.id} holds what they were.`);
    return 0;
  },
};
