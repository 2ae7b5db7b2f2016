import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { LoadedPath } from "./use-loaded-path.ts";

/** How far beyond the view more is loaded before someone gets there. */
const AHEAD = "2400px 0px";
/** How many pages come by themselves; a page of folded rounds fills no view, however many there are. */
const UNASKED_MAX = 3;

/** What loads more of a transcript. */
export interface LoadMore {
  /** What stands before the first row that is loaded, and after the last one. */
  readonly top: RefObject<HTMLDivElement | null>;
  readonly bottom: RefObject<HTMLDivElement | null>;
  /** Whether more comes only when it is asked for. */
  readonly waits: boolean;
  /** To be called when someone scrolls or asks for more. */
  readonly ask: () => void;
}

/** Loads what stands before and after the rows that are loaded, when someone comes near. */
export function useLoadMore(
  scroller: RefObject<HTMLElement | null>,
  { held, loadOlder, loadNewer }: LoadedPath,
  keepScroll: () => void,
  paused: boolean,
): LoadMore {
  const [top, bottom] = [useRef<HTMLDivElement>(null), useRef<HTMLDivElement>(null)];
  const [unasked, setUnasked] = useState(0);
  const [older, newer] = [held?.older ?? null, held?.newer ?? null];
  const waits = unasked >= UNASKED_MAX;
  useEffect(() => {
    if (paused || waits) return;
    const observer = new IntersectionObserver(
      (seen) => {
        for (const { isIntersecting, target } of seen) {
          if (!isIntersecting) continue;
          setUnasked((count) => count + 1);
          // A page that does not come is asked for again when someone gets here again.
          (target === top.current ? loadOlder(keepScroll) : loadNewer()).catch(() => {});
        }
      },
      { root: scroller.current, rootMargin: AHEAD },
    );
    if (older !== null && top.current !== null) observer.observe(top.current);
    if (newer !== null && bottom.current !== null) observer.observe(bottom.current);
    return () => observer.disconnect();
  }, [older, newer, paused, waits, loadOlder, loadNewer, keepScroll, scroller]);
  const ask = useCallback(() => setUnasked(0), []);
  return { top, bottom, waits, ask };
}
