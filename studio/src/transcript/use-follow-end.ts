import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** How near to the end counts as being there. */
const NEAR_PX = 40;

/** A scrolled view that stays at its end as it grows, until someone scrolls away from there. */
export interface FollowEnd {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
  /** Whether it is at its end and stays there. */
  readonly atEnd: boolean;
  /** Goes to the end and stays there. */
  readonly follow: () => void;
  /** The same, with the focus. */
  readonly goToEnd: () => void;
  /** Stays where it is from now on. */
  readonly letGo: () => void;
}

/**
 * Keeps a view at its end without moving it under the eyes of someone who reads further up. `hasEnd` says whether what is
 * in it goes to the end; as long as it does not, there is nothing to stay at.
 */
export function useFollowEnd(hasEnd: boolean): FollowEnd {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const lastTop = useRef(0);
  const whole = useRef(hasEnd);
  whole.current = hasEnd;
  const [atEnd, setAtEnd] = useState(true);
  const set = useCallback((value: boolean) => {
    following.current = value;
    setAtEnd(value);
  }, []);
  const stay = useCallback(() => {
    const box = scroller.current;
    if (box === null || !whole.current || !following.current || isWrittenIn(box)) return;
    box.scrollTop = box.scrollHeight;
    lastTop.current = box.scrollTop;
  }, []);
  useEffect(() => {
    const observer = new ResizeObserver(stay);
    for (const { current } of [scroller, content]) if (current !== null) observer.observe(current);
    return () => observer.disconnect();
  }, [stay]);
  const onScroll = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    const left = box.scrollHeight - box.scrollTop - box.clientHeight;
    // Only moving up is leaving: what grows below moves the end away, and nobody scrolled then.
    if (left < NEAR_PX && whole.current) set(true);
    else if (box.scrollTop < lastTop.current - 1) set(false);
    lastTop.current = box.scrollTop;
  }, [set]);
  const follow = useCallback(() => {
    set(true);
    stay();
  }, [set, stay]);
  const goToEnd = useCallback(() => {
    follow();
    scroller.current?.focus();
  }, [follow]);
  const letGo = useCallback(() => set(false), [set]);
  return { scroller, content, onScroll, atEnd: atEnd && hasEnd, follow, goToEnd, letGo };
}

/** Whether someone writes in a field of the view, which must not move away then. */
function isWrittenIn(box: HTMLElement): boolean {
  const { activeElement } = document;
  return activeElement !== null && box.contains(activeElement) && activeElement.matches("input, textarea");
}
