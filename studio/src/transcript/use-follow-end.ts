import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** The maximum distance from the end that counts as being there. */
const NEAR_PX = 40;

/** A scroll container that follows its end as it grows, until the user scrolls away. */
export interface FollowEnd {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
  /** Whether it is at its end and follows it. */
  readonly atEnd: boolean;
  /** Scrolls to the end and follows it. */
  readonly follow: () => void;
  /** As `follow`, and moves the focus there. */
  readonly goToEnd: () => void;
  /** Stops following the end. */
  readonly stopFollowing: () => void;
}

/**
 * Keeps a scroll container at its end, without moving it while the user reads further up. `hasEnd` is false while the
 * loaded rows do not reach the end, which then is not followed.
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
    // Only scrolling up leaves the end: new content below also moves the end away, but without scrolling.
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
  const stopFollowing = useCallback(() => set(false), [set]);
  return { scroller, content, onScroll, atEnd: atEnd && hasEnd, follow, goToEnd, stopFollowing };
}

/** Whether the user is typing in a field of the container, which must not be scrolled away then. */
function isWrittenIn(box: HTMLElement): boolean {
  const { activeElement } = document;
  return activeElement !== null && box.contains(activeElement) && activeElement.matches("input, textarea");
}
