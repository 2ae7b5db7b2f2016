import { type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { kept, middleOf, type Size, type Viewport, zoomed } from "./tree-geometry.ts";

/** The maximum movement of a pointer in a click, in pixels. */
const SLIP = 5;
const WHEEL_STEP = 0.002;

/** A viewport that can be dragged, scrolled and zoomed. */
export interface ViewportControl {
  readonly viewport: Viewport;
  readonly size: Size | null;
  readonly setViewport: (change: (before: Viewport, size: Size) => Viewport) => void;
  /** Zooms around the middle. */
  readonly zoomBy: (factor: number) => void;
  /** Whether the last pointer gesture was a drag. */
  readonly wasDragged: () => boolean;
  readonly pointerHandlers: {
    readonly onPointerDown: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerMove: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerUp: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerCancel: (event: PointerEvent<HTMLElement>) => void;
  };
}

/** The viewport of a drawing in an element. The wheel scrolls, and zooms with Control; two fingers do both. */
export function useViewport(element: RefObject<HTMLElement | null>, picture: Size): ViewportControl {
  const [viewport, setState] = useState<Viewport>({ x: 0, y: 0, zoom: 1 });
  const [size, setSize] = useState<Size | null>(null);
  const sizeNow = useRef<Size>({ width: 0, height: 0 });
  const pictureNow = useRef(picture);
  pictureNow.current = picture;
  const set = useCallback((change: (before: Viewport) => Viewport): void => {
    setState((before) => kept(change(before), pictureNow.current, sizeNow.current));
  }, []);
  const setViewport = useCallback(
    (change: (before: Viewport, size: Size) => Viewport): void => set((before) => change(before, sizeNow.current)),
    [set],
  );
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const observer = new ResizeObserver(() => {
      sizeNow.current = { width: current.clientWidth, height: current.clientHeight };
      setSize(sizeNow.current.width === 0 ? null : sizeNow.current);
    });
    const scroll = (event: WheelEvent): void => {
      event.preventDefault();
      const { left, top } = current.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        const factor = Math.exp(-event.deltaY * WHEEL_STEP);
        set((before) => zoomed(before, factor, event.clientX - left, event.clientY - top));
        return;
      }
      const [across, down] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
      set((before) => ({ ...before, x: before.x - across, y: before.y - down }));
    };
    observer.observe(current);
    // React's wheel listeners are passive, so the page would scroll as well.
    current.addEventListener("wheel", scroll, { passive: false });
    return () => {
      observer.disconnect();
      current.removeEventListener("wheel", scroll);
    };
  }, [element, set]);
  const zoomBy = useCallback(
    (factor: number): void =>
      setViewport((before, room) => {
        const { x, y } = middleOf(before, pictureNow.current, room);
        return zoomed(before, factor, x, y);
      }),
    [setViewport],
  );
  return { viewport, size, setViewport, zoomBy, ...useDragging(set) };
}

type Dragging = Pick<ViewportControl, "pointerHandlers" | "wasDragged">;

function useDragging(set: (change: (before: Viewport) => Viewport) => void): Dragging {
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const dragged = useRef(false);
  const start = useRef({ x: 0, y: 0 });
  const lift = (event: PointerEvent<HTMLElement>): void => {
    pointers.current.delete(event.pointerId);
  };
  return {
    wasDragged: () => dragged.current,
    pointerHandlers: {
      onPointerDown(event) {
        if (event.button !== 0) return;
        if (pointers.current.size === 0) dragged.current = false;
        start.current = { x: event.clientX, y: event.clientY };
        pointers.current.set(event.pointerId, start.current);
      },
      onPointerMove(event) {
        const before = pointers.current.get(event.pointerId);
        if (before === undefined) return;
        const now = { x: event.clientX, y: event.clientY };
        if (!dragged.current && Math.hypot(now.x - start.current.x, now.y - start.current.y) < SLIP) return;
        // Not earlier: the element that captures the pointer also gets the click.
        if (!dragged.current) event.currentTarget.setPointerCapture(event.pointerId);
        dragged.current = true;
        const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
        pointers.current.set(event.pointerId, now);
        if (other === undefined) {
          set((view) => ({ ...view, x: view.x + now.x - before.x, y: view.y + now.y - before.y }));
          return;
        }
        const { left, top } = event.currentTarget.getBoundingClientRect();
        const apart = Math.hypot(before.x - other.x, before.y - other.y);
        const factor = apart === 0 ? 1 : Math.hypot(now.x - other.x, now.y - other.y) / apart;
        set((view) => zoomed(view, factor, (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top));
      },
      onPointerUp: lift,
      onPointerCancel: lift,
    },
  };
}
