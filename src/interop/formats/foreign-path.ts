import { isNode } from "../../session/log/entry.ts";
import type { ForeignSource } from "./foreign-format.ts";

/** The current branch of a session, for formats without branches. */
export interface ForeignPath {
  /** The ids of its nodes. */
  readonly ids: ReadonlySet<string>;
  /** Its compactions, oldest first. */
  readonly compactions: readonly { readonly id: string; readonly firstKeptEntryId: string }[];
}

/** The branch from the root to the leaf. Costs one pass over the log and holds all node ids in memory. */
export async function pathOf({ entries, leafId }: ForeignSource): Promise<ForeignPath> {
  const parents = new Map<string, string | null>();
  const compactions: { id: string; firstKeptEntryId: string }[] = [];
  for await (const entry of entries()) {
    if (isNode(entry)) parents.set(entry.id, entry.parentId);
    if (entry.type === "compaction") compactions.push({ id: entry.id, firstKeptEntryId: entry.firstKeptEntryId });
  }
  const ids = new Set<string>();
  for (let id = leafId; id !== null && !ids.has(id); id = parents.get(id) ?? null) ids.add(id);
  return { ids, compactions: compactions.filter(({ id }) => ids.has(id)) };
}
