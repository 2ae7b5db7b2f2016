import type { Command } from "../../command.ts";
import { findDeletedSession } from "../../options/session-reference.ts";

/** Brings deleted sessions back. */
export const undelete: Command = {
  name: "undelete",
  summary: "Bring deleted sessions back.",
  arguments: [{ name: "session", repeated: true, what: "a deleted session: its id, or a beginning that no other has" }],
  options: {},
  examples: [{ line: "skein undelete 0199a3", what: "as it was, with its checkpoints" }],
  json: { undeleted: "the ids of the sessions" },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const undeleted = new Set<string>();
    for (const reference of context.positionals) undeleted.add((await findDeletedSession(store, reference)).header.id);
    for (const id of undeleted) await store.undelete(id);
    if (context.json) context.printJson({ undeleted: [...undeleted] });
    else for (const id of undeleted) context.print(`back: ${id}`);
    return 0;
  },
};
