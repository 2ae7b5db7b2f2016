import { type Entry, isNode } from "../session/log/entry.ts";
import { notANode, openRunError, SessionError } from "../session/errors.ts";
import { isOnPath } from "./path-reader.ts";
import type { SessionTree } from "./session-tree.ts";

/** Hides a side branch for good, unless the leaf or a run that has begun is on it. */
export async function pruneBranchOf(tree: SessionTree, entryId: string): Promise<void> {
  const entry = await tree.getEntry(entryId);
  if (entry !== null && !isNode(entry)) throw notANode(tree.id, entryId);
  const draft = { type: "prune", targetId: entryId } as const;
  const check = async (): Promise<void> => {
    if (await tree.isActive(entryId))
      throw new SessionError("ACTIVE_PATH", `Entry ${entryId} is on the active path; branch elsewhere first.`);
    const runId = await runOnBranch(tree, entry as Entry);
    if (runId !== null) throw openRunError(tree.id, runId, draft);
  };
  await tree.appendIf(draft, check, { holds: true });
}

/** The run that has begun and has rows, or may have some, at an entry or below it; null where none has. */
async function runOnBranch({ store, id, head }: SessionTree, entry: Entry): Promise<string | null> {
  const begun = new Set(head.openRuns.filter(({ state }) => state !== "requested").map(({ runId }) => runId));
  if (begun.size === 0) return null;
  for await (const fact of store.read(id, { reverse: true })) {
    if (fact.type !== "run" || !begun.delete(fact.runId)) continue;
    // Only its holder records that a run has started, where the run then is; all of its later rows hang below that.
    const start = fact.parentId === null ? null : await store.getEntry(id, fact.parentId);
    if (start === null || (await isOnPath(store, id, entry, start.id)) || (await isOnPath(store, id, start, entry.id)))
      return fact.runId;
    if (begun.size === 0) return null;
  }
  return null;
}
