import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { TreeView } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import type { SessionProps } from "../session/session-props.ts";
import { TreeCanvas } from "./tree-canvas.tsx";
import { elementsOf, type TreeElement } from "./tree-elements.ts";
import { layOut } from "./tree-layout.ts";
import { type SelectionPart, TreeSelection } from "./tree-selection.tsx";
import type { KnownTree } from "./use-tree.ts";
import "./tree.css";

/** The props of the tree panel. */
export interface TreePanelProps extends SessionProps {
  readonly tree: KnownTree;
  /** Called when the user opens a turn in the transcript, which the tree may cover. */
  readonly onShowTurn: () => void;
}

/** The branches of a session as a graph. */
export function TreePanel({ tree, ...props }: TreePanelProps): ReactNode {
  return (
    <section className="tree-panel" aria-label="Tree of the session">
      <RequestBoundary requested={tree} what="the tree">
        {(data) =>
          data.nodes.length === 0 ? (
            <p className="empty soft">No branches yet: the tree grows with the first message.</p>
          ) : (
            <Tree {...props} tree={data} onChanged={tree.reload} onUnfold={tree.unfold} />
          )
        }
      </RequestBoundary>
    </section>
  );
}

type TreeProps = Omit<TreePanelProps, "tree"> & {
  readonly tree: TreeView;
  readonly onChanged: () => void;
  readonly onUnfold: () => void;
};

function Tree({ session, options, tree, onChanged, onShowTurn, onUnfold }: TreeProps): ReactNode {
  const asked = options["entry"] ?? null;
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [selectedId, setSelectedId] = useState(asked);
  const [part, setPart] = useState<SelectionPart>(null);
  const details = useRef<HTMLElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const elements = useMemo(() => elementsOf(tree, unfolded, asked), [tree, unfolded, asked]);
  const layout = useMemo(() => layOut(elements), [elements]);
  useEffect(() => {
    if (asked !== null) setSelectedId(asked);
  }, [asked]);
  const select = useCallback((element: TreeElement): void => {
    setSelectedId(element.id);
    setPart((before) => (before === "details" ? before : null));
  }, []);
  const open = useCallback((element: TreeElement): void => {
    setSelectedId(element.id);
    setPart("details");
    details.current?.focus();
  }, []);
  const toggle = useCallback(
    (element: TreeElement): void => {
      if (element.count > element.nodes.length) onUnfold();
      setUnfolded((before) => {
        const after = new Set(before);
        if (element.nodes.length > 1) after.add(element.id);
        else after.delete(element.id);
        return after;
      });
    },
    [onUnfold],
  );
  const selected = selectedId === null ? undefined : elements.byNode.get(selectedId);
  const node = selected?.nodes.length === 1 ? selected.nodes[0] : undefined;
  return (
    <>
      <TreeCanvas
        elements={elements}
        layout={layout}
        leafId={tree.leafId}
        selected={selected ?? null}
        asked={asked}
        onSelect={select}
        onOpen={open}
        frameRef={frame}
        onToggle={toggle}
        onFoldAll={unfolded.size === 0 ? null : () => setUnfolded(new Set())}
      />
      {node !== undefined && (
        <TreeSelection
          key={node.id}
          focusRef={details}
          session={session}
          tree={tree}
          node={node}
          part={part}
          onPart={setPart}
          onChanged={onChanged}
          onShowTurn={onShowTurn}
          onClose={() => {
            setSelectedId(null);
            frame.current?.focus();
          }}
        />
      )}
    </>
  );
}
