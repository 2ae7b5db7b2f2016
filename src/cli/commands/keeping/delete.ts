import type { Command } from "../../command.ts";
import { CheckpointManager } from "../../../lifecycle/checkpoints/checkpoint-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Deletes sessions. */
export const deleteCommand: Command = {
  name: "delete",
  summary: "Delete sessions; skein undelete brings them back until they are purged, without the files of checkpoints.",
  arguments: [{ ...SESSION_ARGUMENT, repeated: true }],
  options: {},
  examples: [{ line: "skein delete 0199a3", what: "delete one session; forks of it stay whole" }],
  json: { deleted: "the ids of the sessions" },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const deleted = new Set<string>();
    // All names are looked up first, so that a mistake in one of them deletes nothing.
    for (const reference of context.positionals) deleted.add((await findSession(store, reference)).header.id);
    const checkpoints = new CheckpointManager(store);
    for (const id of deleted) {
      for (const error of await checkpoints.deleteAll(id, "with-files")) context.fail(messageOf(error));
      await store.delete(id);
    }
    if (context.json) context.printJson({ deleted: [...deleted] });
    else for (const id of deleted) context.print(`deleted: ${id}`);
    return 0;
  },
};

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
