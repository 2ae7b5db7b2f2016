import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { LoadedPath } from "./use-loaded-path.ts";

/** The distance outside the viewport at which more is loaded in advance. */
const AHEAD = "2400px 0px";
/** How many pages are loaded automatically; pages of collapsed rounds may never fill the viewport. */
const UNASKED_MAX = 3;

/** Loads more of a transcript. */
export interface LoadMore {
  /** The elements before the first loaded row, and after the last one. */
  readonly top: RefObject<HTMLDivElement | null>;
  readonly bottom: RefObject<HTMLDivElement | null>;
  /** Whether more is only loaded on request. */
  readonly waits: boolean;
  /** Call it when the user scrolls or requests more. */
  readonly ask: () => void;
}

/** Loads the entries before and after the loaded rows when the user scrolls near. */
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
          // A failed page is requested again when the user scrolls there again.
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
