import type { TreeView } from "skein/client";

/** The labels of a session, by entry id. */
export type Labels = ReadonlyMap<string, string>;

const NONE: Labels = new Map();

/** The labels of a tree; none while it is loading. */
export function labelsOf(tree: TreeView | null): Labels {
  if (tree === null) return NONE;
  return new Map(tree.nodes.flatMap(({ id, label }) => (label === null ? [] : [[id, label] as const])));
}
