import type { TreeNodeView, TreeView } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";

/** Where a checkpoint stands in the tree of its session. */
export type CheckpointPlace =
  | { readonly where: "leaf" | "branch"; readonly node: TreeNodeView }
  | { readonly where: "path"; readonly node: TreeNodeView; readonly stepsBack: number }
  /** Before the first entry; or at one that is not in the tree any more. */
  | { readonly where: "start" | "gone"; readonly node: null };

/** Finds where checkpoints stand; made once for a tree, as there can be many checkpoints. */
export function placeFinder(tree: TreeView): (checkpoint: Pick<Checkpoint, "leafId">) => CheckpointPlace {
  const nodes = new Map(tree.nodes.map((node) => [node.id, node]));
  const depths = new Map(tree.activePath.map((id, depth) => [id, depth]));
  return ({ leafId }) => {
    if (leafId === null) return { where: "start", node: null };
    const node = nodes.get(leafId);
    if (node === undefined) return { where: "gone", node: null };
    if (leafId === tree.leafId) return { where: "leaf", node };
    const depth = depths.get(leafId);
    if (depth === undefined) return { where: "branch", node };
    return { where: "path", node, stepsBack: tree.activePath.length - 1 - depth };
  };
}

/** A place in words. */
export function placeText(place: CheckpointPlace): string {
  switch (place.where) {
    case "leaf":
      return "where the session stands now";
    case "branch":
      return "on another branch";
    case "path":
      return `${place.stepsBack === 1 ? "1 entry" : `${place.stepsBack} entries`} back on the active path`;
    case "start":
      return "before the first entry";
    default:
      return "at an entry that was hidden";
  }
}

/** What was noted with a checkpoint; null where nothing was. */
export function noteOf({ metadata }: Pick<Checkpoint, "metadata">): string | null {
  const { note } = metadata;
  return typeof note === "string" && note.trim() !== "" ? note : null;
}
