import { type RefObject, useEffect, useRef } from "react";

/**
 * Closes a popup that a button opened when the user presses Escape or clicks elsewhere.
 *
 * Returns a function that closes it and returns the focus to the button, the first one inside.
 */
export function useDismiss(whole: RefObject<HTMLElement | null>, open: boolean, onClose: () => void): () => void {
  const latest = useRef(onClose);
  latest.current = onClose;
  const close = (): void => {
    latest.current();
    whole.current?.querySelector("button")?.focus();
  };
  const closing = useRef(close);
  closing.current = close;
  useEffect(() => {
    if (!open) return;
    const press = (event: KeyboardEvent): void => {
      if (event.key === "Escape") closing.current();
    };
    const point = (event: PointerEvent): void => {
      if (!whole.current?.contains(event.target as Node)) latest.current();
    };
    document.addEventListener("keydown", press);
    document.addEventListener("pointerdown", point, true);
    return () => {
      document.removeEventListener("keydown", press);
      document.removeEventListener("pointerdown", point, true);
    };
  }, [open, whole]);
  return close;
}
