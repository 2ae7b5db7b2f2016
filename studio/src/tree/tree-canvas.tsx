import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useCallback,
  useId,
  useMemo,
} from "react";
import { nextSelection } from "./next-selection.ts";
import { NODE_KINDS, type NodeKind, kindOf } from "./node-kind.ts";
import type { TreeElement, TreeElements } from "./tree-elements.ts";
import { outlineOf, revealed, seenOf, spotAt, TEXT_ZOOM_MIN } from "./tree-geometry.ts";
import { TreeItem } from "./tree-item.tsx";
import type { Spot, TreeLayout } from "./tree-layout.ts";
import { TreeTools } from "./tree-tools.tsx";
import { useTreeView } from "./use-tree-view.ts";
import "./tree-canvas.css";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"];

/** The props of the tree's drawing. */
export interface TreeCanvasProps {
  readonly elements: TreeElements;
  readonly layout: TreeLayout;
  readonly leafId: string | null;
  readonly selected: TreeElement | null;
  /** An entry that the URL names; it is scrolled into view. */
  readonly asked: string | null;
  readonly onSelect: (element: TreeElement) => void;
  /** Called on Enter or a double click. */
  readonly onOpen: (element: TreeElement) => void;
  readonly onToggle: (element: TreeElement) => void;
  readonly onFoldAll: (() => void) | null;
  /** The element that has the focus. */
  readonly frameRef: RefObject<HTMLDivElement | null>;
}

/** The drawing of a tree: only visible elements are rendered, so that its size does not matter. */
export function TreeCanvas(props: TreeCanvasProps): ReactNode {
  const { elements, layout, leafId, selected, onSelect, onOpen, onToggle } = props;
  const frame = props.frameRef;
  const control = useTreeView(frame, props);
  const { viewport, size, setViewport, wasDragged } = control;
  const prefix = useId();
  const seen = useMemo(
    () => (size === null ? { spots: [], lines: "", activeLines: "" } : seenOf(layout, viewport, size)),
    [layout, viewport, size],
  );
  const click = useCallback(
    ({ element }: Spot): void => {
      if (wasDragged()) return;
      if (element.nodes.length > 1) onToggle(element);
      onSelect(element);
    },
    [wasDragged, onToggle, onSelect],
  );
  const open = useCallback(({ element }: Spot): void => onOpen(element), [onOpen]);
  const press = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (ARROWS.includes(event.key)) {
      const next = nextSelection(elements, selected, leafId, event.key);
      const spot = next === null ? undefined : layout.spots.get(next.id);
      if (next !== null) onSelect(next);
      if (spot !== undefined) setViewport((before, room) => revealed(spot, before, room));
    } else if (event.key === "Enter" && selected !== null) {
      if (selected.nodes.length > 1) onToggle(selected);
      else onOpen(selected);
    } else if (event.key === " " && selected !== null) onToggle(selected);
    else if (event.key === "+" || event.key === "=") control.zoomBy(1.25);
    else if (event.key === "-") control.zoomBy(0.8);
    else if (event.key === "0") control.fit();
    else return;
    event.preventDefault();
  };
  const small = viewport.zoom < TEXT_ZOOM_MIN;
  const clickSmall = (event: MouseEvent): void => {
    const { left, top } = (frame.current as HTMLElement).getBoundingClientRect();
    const spot = small ? spotAt(layout, viewport, event.clientX - left, event.clientY - top) : null;
    if (spot !== null) click(spot);
  };
  const shown = small ? seen.spots.filter(({ element }) => element === selected) : seen.spots;
  const isSelectedShown = selected !== null && shown.some(({ element }) => element === selected);
  return (
    <div className="tree-window">
      <div
        ref={frame}
        role="tree"
        aria-label="Branches of the session"
        aria-activedescendant={isSelectedShown ? `${prefix}${selected.id}` : undefined}
        tabIndex={0}
        className="tree-canvas"
        onKeyDown={press}
        onClick={clickSmall}
        {...control.pointerHandlers}
      >
        <div
          className="tree-plane"
          style={{ transform: `translate(${viewport.x}px, ${viewport.y}px) scale(${viewport.zoom})` }}
        >
          <svg className="tree-lines" aria-hidden="true">
            <path d={seen.lines} />
            <path d={seen.activeLines} className="tree-lines-active" />
            {small && <Outlines spots={seen.spots} />}
          </svg>
          {shown.map((spot) => (
            <TreeItem
              key={spot.element.id}
              spot={spot}
              domId={`${prefix}${spot.element.id}`}
              selected={spot.element === selected}
              leaf={spot.element.nodes.length === 1 && spot.element.id === leafId}
              onClick={click}
              onOpen={open}
            />
          ))}
        </div>
      </div>
      <TreeTools control={control} onFoldAll={props.onFoldAll} />
    </div>
  );
}

function Outlines({ spots }: { readonly spots: readonly Spot[] }): ReactNode {
  const byKind = new Map<NodeKind | "run", Spot[]>();
  for (const spot of spots) {
    const [first, second] = spot.element.nodes;
    if (first === undefined) continue;
    const kind = second === undefined ? kindOf(first) : "run";
    const others = byKind.get(kind);
    if (others === undefined) byKind.set(kind, [spot]);
    else others.push(spot);
  }
  return (["run", ...NODE_KINDS] as const).map((kind) => (
    <path key={kind} d={outlineOf(byKind.get(kind) ?? [])} className={`tree-outline tree-glyph-${kind}`} />
  ));
}
