import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";

/**
 * Keeps the visible rows in place when rows are inserted above: call the returned function right before that. Browsers
 * do so themselves, but not all of them, and not at the very top.
 */
export function useKeepScroll(scroller: RefObject<HTMLElement | null>, firstId: string | undefined): () => void {
  const anchor = useRef<{ readonly element: Element; readonly top: number } | null>(null);
  const note = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    const edge = box.getBoundingClientRect().top;
    // Not the first row, which may be part of an answer and is replaced when the rest of that is loaded.
    const element = [...box.querySelectorAll(".transcript-row ~ .transcript-row")].find(
      (row) => row.getBoundingClientRect().bottom > edge,
    );
    anchor.current = element === undefined ? null : { element, top: element.getBoundingClientRect().top };
  }, [scroller]);
  useLayoutEffect(() => {
    const [box, held] = [scroller.current, anchor.current];
    anchor.current = null;
    if (box === null || held === null || !held.element.isConnected) return;
    const moved = held.element.getBoundingClientRect().top - held.top;
    if (Math.abs(moved) > 0.5) box.scrollTop += moved;
  }, [scroller, firstId]);
  return note;
}
