import { memo, type ReactNode } from "react";
import type { TreeNodeView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { NodeGlyph } from "./node-glyph.tsx";
import { captionOf, KIND_NAMES, kindOf } from "./node-kind.ts";
import { BOX, cornerOf } from "./tree-geometry.ts";
import type { Spot } from "./tree-layout.ts";
import "./tree-item.css";

interface ItemProps {
  readonly spot: Spot;
  readonly domId: string;
  readonly selected: boolean;
  readonly leaf: boolean;
  readonly onClick: (spot: Spot) => void;
  readonly onOpen: (spot: Spot) => void;
}

/** One element of the tree: a node, or the number of nodes in a folded run. */
export const TreeItem = memo(function TreeItem(props: ItemProps): ReactNode {
  const { spot, domId, selected, leaf, onClick, onOpen } = props;
  const { element } = spot;
  const node = element.nodes[0] as TreeNodeView;
  const folded = element.nodes.length > 1;
  const names = ["tree-item", folded ? "tree-item-run" : `tree-item-${kindOf(node)}`];
  if (element.active) names.push("tree-item-active");
  if (selected) names.push("tree-item-selected");
  if (leaf) names.push("tree-item-leaf");
  const { x, y } = cornerOf(spot);
  const siblings = element.parent?.children ?? [element];
  return (
    // The tree itself has the focus and handles the keys for all items.
    // biome-ignore lint/a11y/useFocusableInteractive: see above.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above.
    <div
      id={domId}
      role="treeitem"
      aria-level={spot.row + 1}
      aria-setsize={siblings.length}
      aria-posinset={siblings.indexOf(element) + 1}
      aria-selected={selected}
      aria-expanded={folded ? false : element.unfolded ? true : undefined}
      className={names.join(" ")}
      style={{ left: x, top: y, width: BOX.width, height: BOX.height }}
      onClick={() => onClick(spot)}
      onDoubleClick={() => onOpen(spot)}
    >
      {folded ? (
        <span className="tree-item-text">
          <strong>{element.count.toLocaleString("en")} entries</strong>
          <span className="tree-item-meta">folded · click to unfold</span>
        </span>
      ) : (
        <>
          <NodeGlyph kind={kindOf(node)} />
          <span className="tree-item-text">
            <bdi className="tree-item-caption">{visibleText(captionOf(node))}</bdi>
            <Marks node={node} leaf={leaf} />
          </span>
        </>
      )}
      <span className="only-for-readers">{element.active ? "on the active path" : "on a side branch"}</span>
    </div>
  );
});

function Marks({ node, leaf }: { readonly node: TreeNodeView; readonly leaf: boolean }): ReactNode {
  const { label, checkpoints, toolCalls } = node;
  return (
    <span className="tree-item-meta">
      {leaf && <span className="tree-mark tree-mark-leaf">leaf</span>}
      {label !== null && <bdi className="tree-mark tree-mark-label">{visibleText(label)}</bdi>}
      {checkpoints.length > 0 && (
        <span className="tree-mark tree-mark-checkpoint">
          <span aria-hidden="true">⚑{checkpoints.length > 1 ? ` ×${checkpoints.length}` : ""}</span>
          <span className="only-for-readers">
            {checkpoints.length === 1 ? "checkpoint" : `${checkpoints.length} checkpoints`}
          </span>
        </span>
      )}
      <span className="tree-item-kind">
        {KIND_NAMES[kindOf(node)]}
        {node.preview !== "" && toolCalls.length > 0 && ` · calls ${toolCalls.join(", ")}`}
      </span>
    </span>
  );
}
