import type { ReactNode } from "react";
import { NodeGlyph } from "./node-glyph.tsx";
import { KIND_NAMES, NODE_KINDS } from "./node-kind.ts";
import type { TreeViewControl } from "./use-tree-view.ts";
import "./tree-tools.css";

/** The zoom buttons of a tree, and the legend. */
export function TreeTools({
  control,
  onFoldAll,
}: {
  readonly control: TreeViewControl;
  readonly onFoldAll: (() => void) | null;
}): ReactNode {
  const { zoomBy, fit, showLeaf } = control;
  return (
    <div className="tree-tools">
      <div role="toolbar" aria-label="View of the tree" className="tree-buttons">
        <Tool name="Zoom out" sign="−" onClick={() => zoomBy(0.8)} />
        <Tool name="Zoom in" sign="+" onClick={() => zoomBy(1.25)} />
        <Tool name="Fit the whole tree" sign="Fit" onClick={fit} />
        {showLeaf !== null && <Tool name="Show the leaf" sign="Leaf" onClick={showLeaf} />}
        {onFoldAll !== null && <Tool name="Fold long runs" sign="Fold" onClick={onFoldAll} />}
      </div>
      <details className="tree-legend">
        <summary>Legend</summary>
        <ul>
          {NODE_KINDS.map((kind) => (
            <li key={kind}>
              <NodeGlyph kind={kind} />
              {KIND_NAMES[kind]}
            </li>
          ))}
          <li>
            <span className="tree-legend-line" aria-hidden="true" />
            Active path
          </li>
          <li>
            <span className="tree-mark tree-mark-leaf">leaf</span>
            The session's position
          </li>
          <li>
            <span className="tree-mark tree-mark-label">text</span>
            Label
          </li>
          <li>
            <span className="tree-mark tree-mark-checkpoint">⚑</span>
            Checkpoint
          </li>
        </ul>
        <p className="small soft">Arrow keys move, Enter opens, Space folds, + and − zoom, 0 shows all.</p>
      </details>
    </div>
  );
}

interface ToolProps {
  readonly name: string;
  readonly sign: string;
  readonly onClick: () => void;
}

function Tool({ name, sign, onClick }: ToolProps): ReactNode {
  return (
    <button type="button" className="button tree-button" aria-label={name} title={name} onClick={onClick}>
      {sign}
    </button>
  );
}
