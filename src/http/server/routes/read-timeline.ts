import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import { treeNodeOf } from "../../tree-node.ts";
import type { CheckpointTimeline } from "../../tree-wire.ts";

/** The latest checkpoints of a session with where they stand. Walks up the active path as far as the earliest of them. */
export async function readTimeline(
  store: SessionStore,
  { header: { id }, leafId }: SessionHead,
  limit: number,
): Promise<CheckpointTimeline> {
  const all = await store.listCheckpoints(id);
  const latest = all.slice(-limit).reverse();
  const leaves = [...new Set(latest.map((one) => one.leafId))].filter((leaf) => leaf !== null);
  const found = await Promise.all(leaves.map((leaf) => store.getEntry(id, leaf)));
  const nodes = new Map(found.flatMap((entry) => (entry === null ? [] : [[entry.id, treeNodeOf(entry)]])));
  const earliest = Math.min(...found.flatMap((entry) => entry?.seq ?? []));
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
