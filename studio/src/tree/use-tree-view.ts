import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import type { TreeElement, TreeElements } from "./tree-elements.ts";
import { fitted, isSeen, pictureSize, revealed, TEXT_ZOOM_MIN, type Viewport, type Size } from "./tree-geometry.ts";
import type { Spot, TreeLayout } from "./tree-layout.ts";
import { useViewport, type ViewportControl } from "./use-viewport.ts";

/** The viewport of a tree. */
export interface TreeViewControl extends ViewportControl {
  /** Shows the whole tree. */
  readonly fit: () => void;
  /** Shows the leaf; null without one. */
  readonly showLeaf: (() => void) | null;
}

interface Shown {
  readonly elements: TreeElements;
  readonly layout: TreeLayout;
  readonly leafId: string | null;
  readonly asked: string | null;
  readonly selected: TreeElement | null;
}

/**
 * Keeps the viewport of a tree. It starts at the leaf, and follows the leaf while that is visible; elsewhere it does
 * not move when the session grows.
 */
export function useTreeView(frame: RefObject<HTMLElement | null>, shown: Shown): TreeViewControl {
  const { layout, leafId, asked } = shown;
  const control = useViewport(frame, pictureSize(layout));
  const { viewport, size, setViewport } = control;
  const now = useRef({ shown, viewport, leaf: null as Spot | null });
  const leaf = spotOf(shown, leafId);
  const started = useRef(false);
  useLayoutEffect(() => {
    if (size === null) return;
    const before = now.current;
    now.current = { shown, viewport, leaf };
    if (!started.current) {
      started.current = true;
      setViewport((_, room) => firstView(layout, leaf, room));
      return;
    }
    if (leaf === null || before.leaf?.element.id === leaf.element.id) return;
    const followed = before.leaf !== null && isSeen(before.leaf, before.viewport, size);
    if (followed && !isSeen(leaf, viewport, size)) setViewport((view, room) => revealed(leaf, view, room));
  }, [shown, viewport, leaf, layout, size, setViewport]);
  const askedSpot = spotOf(shown, asked);
  // Depends on the named entry only, not on other changes.
  useEffect(() => {
    if (askedSpot !== null && size !== null) setViewport((view, room) => revealed(askedSpot, view, room));
  }, [asked, askedSpot?.element.id, size === null]);
  const selectedSpot = spotOf(shown, shown.selected?.id ?? null);
  // The form of a selection covers part of the drawing, but must not cover the selected element.
  useEffect(() => {
    if (selectedSpot !== null && size !== null) setViewport((view, room) => revealed(selectedSpot, view, room));
  }, [shown.selected?.id, size]);
  const fit = useCallback(() => setViewport((_, room) => fitted(layout, room)), [layout, setViewport]);
  const showLeaf = leaf && (() => setViewport((view, room) => revealed(leaf, { ...view, zoom: 1 }, room)));
  return { ...control, fit, showLeaf };
}

function spotOf({ elements, layout }: Shown, id: string | null): Spot | null {
  const element = id === null ? undefined : elements.byNode.get(id);
  return (element && layout.spots.get(element.id)) ?? null;
}

/** The whole tree if its text is readable then, else the leaf. */
function firstView(layout: TreeLayout, leaf: Spot | null, room: Size): Viewport {
  const all = fitted(layout, room);
  if (all.zoom >= TEXT_ZOOM_MIN * 1.4 || leaf === null) return all;
  return revealed(leaf, { ...fitted({ ...layout, rows: [], lanes: Math.min(2, layout.lanes) }, room), zoom: 1 }, room);
}
