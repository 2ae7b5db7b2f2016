import { nextSlice } from "../../../internal/long-work.ts";
import { entryCharacters } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import { treeNodeOf } from "../../tree-node.ts";
import type { CheckpointTimeline, TreeNodeView } from "../../tree-wire.ts";

/** The latest checkpoints of a session with their nodes in the tree. Walks up the active path as far as the earliest of them. */
export async function readTimeline(
  store: SessionStore,
  { header: { id }, leafId }: SessionHead,
  limit: number,
): Promise<CheckpointTimeline> {
  const all = await store.listCheckpoints(id);
  const latest = all.slice(-limit).reverse();
  const leaves = [...new Set(latest.map((one) => one.leafId))].filter((leaf) => leaf !== null);
  const nodes = new Map<string, TreeNodeView | null>();
  let earliest = Number.POSITIVE_INFINITY;
  // Reads one entry at a time: each may be large, and only little of it is kept.
  for (const leaf of leaves) {
    const entry = await store.getEntry(id, leaf);
    if (entry === null) continue;
    nodes.set(entry.id, treeNodeOf(entry));
    earliest = Math.min(earliest, entry.seq);
    await nextSlice(entryCharacters(entry));
  }
  const steps = new Map<string, number>();
  if (leafId !== null && nodes.size > 0) {
    for await (const entry of walkUp(store, id, leafId)) {
      if (entry.seq < earliest) break;
      steps.set(entry.id, steps.size);
    }
  }
  const items = latest.map((one) => ({
    ...one,
    node: nodes.get(one.leafId ?? "") ?? null,
    stepsBack: steps.get(one.leafId ?? "") ?? null,
  }));
  return { items, total: all.length };
}
