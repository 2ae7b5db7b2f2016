import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import type { TreeElement, TreeElements } from "./tree-elements.ts";
import { fitted, isSeen, pictureSize, revealed, TEXT_ZOOM_MIN, type Viewport, type Size } from "./tree-geometry.ts";
import type { Spot, TreeLayout } from "./tree-layout.ts";
import { useViewport, type ViewportControl } from "./use-viewport.ts";

/** A window onto a tree. */
export interface TreeViewControl extends ViewportControl {
  /** Shows all of it. */
  readonly fit: () => void;
  /** Shows where the session stands; null where it stands nowhere. */
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
 * Keeps which part of a tree is seen. It begins at the leaf; whoever looks at the leaf goes on seeing it when the session
 * grows, and whoever looks elsewhere stays there.
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
  // Only what is asked for moves the window, and not what else changes.
  useEffect(() => {
    if (askedSpot !== null && size !== null) setViewport((view, room) => revealed(askedSpot, view, room));
  }, [asked, askedSpot?.element.id, size === null]);
  const selectedSpot = spotOf(shown, shown.selected?.id ?? null);
  // What is done with a selection takes room from the picture, and must not hide it.
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

/** All of it where that can be read, and otherwise where the session stands. */
function firstView(layout: TreeLayout, leaf: Spot | null, room: Size): Viewport {
  const all = fitted(layout, room);
  if (all.zoom >= TEXT_ZOOM_MIN * 1.4 || leaf === null) return all;
  return revealed(leaf, { ...fitted({ ...layout, rows: [], lanes: Math.min(2, layout.lanes) }, room), zoom: 1 }, room);
}
