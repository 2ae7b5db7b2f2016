import { useEffect, useRef } from "react";

/** Returns the focus to the element that had it before, when the component that took it is unmounted. */
export function useReturnFocus(): void {
  const before = useRef<HTMLElement | null>(null);
  // Read during rendering, as fields take the focus before any effect runs.
  before.current ??= document.activeElement as HTMLElement | null;
  useEffect(
    () => () => {
      // If the user has moved the focus elsewhere, it stays there.
      const lost = document.activeElement === null || document.activeElement === document.body;
      if (lost) before.current?.focus();
    },
    [],
  );
}
