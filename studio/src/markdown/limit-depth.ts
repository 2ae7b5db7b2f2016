interface TreeNode {
  readonly type: string;
  readonly children?: readonly TreeNode[];
}

/** How deep quotes and lists may be in each other before a text is shown as it is. */
export const DEPTH_MAX = 60;

/** A remark plugin that refuses a text that nests so deep that drawing it would take the page down. */
export function limitDepth(): (tree: TreeNode) => void {
  return (tree) => {
    let level: readonly TreeNode[] = [tree];
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > DEPTH_MAX) throw new RangeError("The text nests too deep.");
      level = level.flatMap(({ children = [] }) => children);
    }
  };
}
