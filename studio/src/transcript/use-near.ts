import { createContext, type RefObject, useCallback, useContext, useEffect, useRef, useState } from "react";

/** How far from the view counts as near it. */
const NEAR = "2000px 0px";

/** Calls back once when an element comes near the view; the result takes that back. */
export type ObserveNear = (element: Element, near: () => void) => () => void;

/** Watches what comes near the view of a transcript. */
export const NearContext = createContext<ObserveNear | null>(null);

/** Makes a watch over what comes near the view of a scroller. */
export function useObserveNear(scroller: RefObject<Element | null>): ObserveNear {
  const watch = useRef<{ readonly observer: IntersectionObserver; readonly calls: Map<Element, () => void> }>(null);
  return useCallback(
    (element, near) => {
      watch.current ??= makeWatch(scroller.current);
      const { observer, calls } = watch.current;
      calls.set(element, near);
      observer.observe(element);
      return () => {
        calls.delete(element);
        observer.unobserve(element);
      };
    },
    [scroller],
  );
}

function makeWatch(root: Element | null): {
  readonly observer: IntersectionObserver;
  readonly calls: Map<Element, () => void>;
} {
  const calls = new Map<Element, () => void>();
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) calls.get(target)?.();
    },
    { root, rootMargin: NEAR },
  );
  return { observer, calls };
}

/** Whether an element has been near the view; `atFirst` where there is no time to wait for that. */
export function useNear(element: RefObject<Element | null>, atFirst: boolean): boolean {
  const observe = useContext(NearContext);
  const [near, setNear] = useState(atFirst || observe === null);
  useEffect(() => {
    if (near || observe === null || element.current === null) return;
    return observe(element.current, () => setNear(true));
  }, [near, observe, element]);
  return near;
}
