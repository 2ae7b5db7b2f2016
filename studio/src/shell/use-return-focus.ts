import { useEffect, useRef } from "react";

/** Gives the focus back to what had it, when something goes away that took it. */
export function useReturnFocus(): void {
  const before = useRef<HTMLElement | null>(null);
  // Fields take the focus while they are put on the page, which is before any effect.
  before.current ??= document.activeElement as HTMLElement | null;
  useEffect(
    () => () => {
      // Whoever has gone on to something else stays there.
      const lost = document.activeElement === null || document.activeElement === document.body;
      if (lost) before.current?.focus();
    },
    [],
  );
}
