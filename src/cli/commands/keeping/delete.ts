import type { Command } from "../../command.ts";
import { CheckpointManager } from "../../../lifecycle/checkpoints/checkpoint-manager.ts";
import { findSession, SESSION_ARGUMENT, findDeletedSession } from "../../options/session-reference.ts";

/** Deletes sessions. */
export const deleteCommand: Command = {
  name: "delete",
  summary:
    "Delete sessions. Until they are purged, skein undelete restores them, but not the files of their checkpoints.",
  arguments: [{ ...SESSION_ARGUMENT, repeated: true }],
  options: {},
  examples: [{ line: "skein delete 0199a3", what: "delete one session; its forks are not changed" }],
  json: { deleted: "the ids of the deleted sessions" },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const deleted = new Set<string>();
    // Resolves all names first, so that a mistake in one of them deletes nothing.
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

/** Restores deleted sessions. */
export const undelete: Command = {
  name: "undelete",
  summary: "Restore deleted sessions.",
  arguments: [
    {
      name: "session",
      repeated: true,
      what: "a deleted session: its id, or a unique prefix or suffix of it",
    },
  ],
  options: {},
  examples: [{ line: "skein undelete 0199a3", what: "restore one session with its checkpoints" }],
  json: { undeleted: "the ids of the restored sessions" },
  store: "existing",
  async run(context) {
    await using store = await context.openStore();
    const undeleted = new Set<string>();
    for (const reference of context.positionals) undeleted.add((await findDeletedSession(store, reference)).header.id);
    for (const id of undeleted) await store.undelete(id);
    if (context.json) context.printJson({ undeleted: [...undeleted] });
    else for (const id of undeleted) context.print(`restored: ${id}`);
    return 0;
  },
};
