import { SessionError } from "../session/errors.ts";
import { type CompactionView, inspectCompaction } from "../session/context/compaction.ts";
import { compactionInForce } from "./path-reader.ts";
import type { SessionTree } from "./session-tree.ts";

/** Makes the context ignore a compaction; without an id, the one in force. */
export async function undoCompactionOf(tree: SessionTree, entryId: string | undefined): Promise<void> {
  const head = await tree.refresh();
  const targetId = entryId ?? (await compactionInForce(tree.store, head, head.path));
  if (targetId === null)
    throw new SessionError("UNKNOWN_ENTRY", `Session ${tree.id} has no compaction to undo on this branch.`);
  await tree.append({ type: "compaction_undone", targetId });
}

/** What a compaction dropped from the context, and what it kept. */
export async function inspectCompactionOf(tree: SessionTree, entryId: string): Promise<CompactionView> {
  const view = inspectCompaction(await tree.getBranch(entryId), entryId);
  if (view === null) throw new SessionError("INVALID_ENTRY", `Entry ${entryId} is not a compaction.`);
  return view;
}
