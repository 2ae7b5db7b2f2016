import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";

/**
 * Keeps what is in view where it is when rows are put in front of it: call the result right before they are. Browsers do
 * this themselves, except at the very top, and not all of them.
 */
export function useKeepScroll(scroller: RefObject<HTMLElement | null>, firstId: string | undefined): () => void {
  const anchor = useRef<{ readonly element: Element; readonly top: number } | null>(null);
  const note = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    const edge = box.getBoundingClientRect().top;
    // The first row may be the end of an answer, which is another row once all of it is there.
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
