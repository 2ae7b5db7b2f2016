import { type Command, textOption } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../session-reference.ts";

/** Makes a checkpoint. */
export const checkpoint: Command = {
  name: "checkpoint",
  summary: "Mark where a session stands, to come back to it.",
  arguments: [SESSION_ARGUMENT],
  options: { note: { value: "TEXT", what: "what to remember about it" } },
  examples: [{ line: 'skein checkpoint last --note "tests are green"', what: "mark where the latest session stands" }],
  json: { checkpoint: "the checkpoint: id, sessionId, version, leafId, createdAt, parentCheckpointId, metadata" },
  store: "existing",
  async run(context) {
    const note = textOption(context.values, "note");
    await using store = await context.openStore();
    await using manager = openManager(store);
    const { header } = await findSession(store, context.positionals[0] as string);
    const made = await manager.checkpoint(header.id, note === undefined ? {} : { metadata: { note } });
    if (context.json) context.printJson({ checkpoint: made });
    else context.print(`Checkpoint ${made.id}: session ${header.id} at version ${made.version}.`);
    return 0;
  },
};
