import type { TreeView } from "skein/client";

/** The labels of a session, by entry. */
export type Labels = ReadonlyMap<string, string>;

const NONE: Labels = new Map();

/** The labels that a tree has; none while it is not there. */
export function labelsOf(tree: TreeView | null): Labels {
  if (tree === null) return NONE;
  return new Map(tree.nodes.flatMap(({ id, label }) => (label === null ? [] : [[id, label] as const])));
}
