import { createContext, type RefObject, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";

/** How far from the view counts as near it: farther than a hard turn of the wheel goes in a frame. */
const NEAR_PX = 3000;

/** Calls back once when a row comes near the view; the result takes that back. */
export type ObserveNear = (row: Element, near: () => void) => () => void;

/** Watches what comes near the view of a transcript. */
export const NearContext = createContext<ObserveNear | null>(null);

/** A watch over the rows of a list. */
export interface NearWatch {
  readonly observe: ObserveNear;
  /** Looks which rows are near the view now; to be called whenever the view or a row may have moved. */
  readonly look: () => void;
}

/**
 * Watches which rows of a list are near the view of its scroller, and marks them with `data-near`. It costs what is near,
 * however long the list is. An observer of the browser would tell only after a frame that does not have the rows yet.
 */
export function useNearWatch(scroller: RefObject<Element | null>, list: RefObject<Element | null>): NearWatch {
  const calls = useRef(new Map<Element, () => void>());
  const marked = useRef<ReadonlySet<Element>>(new Set());
  const observe = useCallback<ObserveNear>((row, near) => {
    calls.current.set(row, near);
    // It may have been looked at before it was watched, and nothing may move any more.
    if (marked.current.has(row)) near();
    return () => calls.current.delete(row);
  }, []);
  const look = useCallback(() => {
    if (scroller.current === null || list.current === null) return;
    const near = rowsNear(scroller.current.getBoundingClientRect(), list.current.children);
    for (const row of marked.current) if (!near.has(row)) row.removeAttribute("data-near");
    for (const row of near) {
      if (!marked.current.has(row)) row.setAttribute("data-near", "");
      calls.current.get(row)?.();
    }
    marked.current = near;
  }, [scroller, list]);
  return useMemo(() => ({ observe, look }), [observe, look]);
}

function rowsNear({ top, bottom }: DOMRect, rows: HTMLCollection): ReadonlySet<Element> {
  const near = new Set<Element>();
  for (let index = firstBelow(rows, top - NEAR_PX); index < rows.length; index++) {
    const row = rows[index] as Element;
    if (row.getBoundingClientRect().top > bottom + NEAR_PX) break;
    near.add(row);
  }
  return near;
}

/** The first of the rows that ends below a height. */
function firstBelow(rows: HTMLCollection, height: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] as Element).getBoundingClientRect().bottom < height) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a row has been near the view; `atFirst` where there is no time to wait for that. */
export function useNear(row: RefObject<Element | null>, atFirst: boolean): boolean {
  const observe = useContext(NearContext);
  const [near, setNear] = useState(atFirst || observe === null);
  useEffect(() => {
    if (near || observe === null || row.current === null) return;
    return observe(row.current, () => setNear(true));
  }, [near, observe, row]);
  return near;
}
