import { createContext, type RefObject, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";

/** The distance from the viewport that counts as near: more than a fast turn of the wheel scrolls in a frame. */
const NEAR_PX = 3000;

/** Calls back once when a row comes near the viewport; the result cancels that. */
export type ObserveNear = (row: Element, near: () => void) => () => void;

/** Observes the rows near a transcript's viewport. */
export const NearContext = createContext<ObserveNear | null>(null);

/** Observes the rows of a list. */
export interface NearWatch {
  readonly observe: ObserveNear;
  /** Updates the near rows; call it whenever the viewport or a row may have moved. */
  readonly look: () => void;
}

/**
 * Tracks which rows of a list are near the viewport of its scroll container, and marks them with `data-near`. The cost
 * depends on the near rows only, not on the length of the list. An IntersectionObserver would be a frame too late.
 */
export function useNearWatch(scroller: RefObject<Element | null>, list: RefObject<Element | null>): NearWatch {
  const calls = useRef(new Map<Element, () => void>());
  const marked = useRef<ReadonlySet<Element>>(new Set());
  const observe = useCallback<ObserveNear>((row, near) => {
    calls.current.set(row, near);
    // The row may have been marked before it was observed, and nothing may move after that.
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

/** The first row that ends below a height, by binary search. */
function firstBelow(rows: HTMLCollection, height: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] as Element).getBoundingClientRect().bottom < height) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a row has been near the viewport; with `atFirst`, it counts as near from the start. */
export function useNear(row: RefObject<Element | null>, atFirst: boolean): boolean {
  const observe = useContext(NearContext);
  const [near, setNear] = useState(atFirst || observe === null);
  useEffect(() => {
    if (near || observe === null || row.current === null) return;
    return observe(row.current, () => setNear(true));
  }, [near, observe, row]);
  return near;
}
