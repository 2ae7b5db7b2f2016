import { isNode } from "../session/entry.ts";
import { notANode, SessionError } from "../session/errors.ts";
import type { SessionTree } from "./session-tree.ts";

/** Hides a side branch for good, unless the leaf is on it. */
export async function pruneBranchOf(tree: SessionTree, entryId: string): Promise<void> {
  const entry = await tree.getEntry(entryId);
  if (entry !== null && !isNode(entry)) throw notANode(tree.id, entryId);
  await tree.appendIf({ type: "prune", targetId: entryId }, async () => {
    if (!(await tree.isActive(entryId))) return;
    throw new SessionError("ACTIVE_PATH", `Entry ${entryId} is on the active path; branch elsewhere first.`);
  });
}
