import type { Command } from "../command.ts";
import { openManager } from "../open-manager.ts";

/** Goes back to a checkpoint. */
export const restore: Command = {
  name: "restore",
  summary: "Go back to a checkpoint: the session's leaf moves there, and nothing is erased.",
  details: "Files that a checkpoint holds stay where they are: they come back with the sandbox of an agent.",
  arguments: [{ name: "checkpoint", what: "its id, from skein checkpoints" }],
  options: {},
  examples: [{ line: "skein restore 0199b7c2-1f6e-7d3a-8c55-2f0d9e6a4b11", what: "go on from there" }],
  json: {
    sessionId: "the session's id",
    leafId: "the entry that the next one hangs on now, or null",
    turnCount: "how many turns the path has now",
    version: "how many entries the log has now",
  },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    await using manager = openManager(store);
    const state = await manager.restore(context.positionals[0] as string, { turns: false });
    const { sessionId, leafId, turnCount, version } = state;
    if (context.json) context.printJson({ sessionId, leafId, turnCount, version });
    else context.print(`Session ${sessionId} stands after ${turnCount} turns again; its log has ${version} entries.`);
    return 0;
  },
};
