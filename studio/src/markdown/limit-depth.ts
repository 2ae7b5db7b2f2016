interface TreeNode {
  readonly type: string;
  readonly children?: readonly TreeNode[];
}

/** The maximum depth of nested quotes and lists; a deeper text is shown as plain text. */
export const DEPTH_MAX = 60;

/** A remark plugin that throws for texts nested so deeply that rendering them would crash the page. */
export function limitDepth(): (tree: TreeNode) => void {
  return (tree) => {
    let level: readonly TreeNode[] = [tree];
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > DEPTH_MAX) throw new RangeError("The text is nested too deep.");
      level = level.flatMap(({ children = [] }) => children);
    }
  };
}
