import { useCallback, useState } from "react";

const KEY = "skein-tree";

/** Whether the tree is shown beside the transcript: as it was left, and at first where there is room for it. */
export function useTreeShown(): readonly [boolean, (shown: boolean) => void] {
  const [shown, setShown] = useState(() => {
    const kept = localStorage.getItem(KEY);
    return kept === null ? window.matchMedia("(min-width: 68rem)").matches : kept === "shown";
  });
  const set = useCallback((next: boolean) => {
    setShown(next);
    localStorage.setItem(KEY, next ? "shown" : "hidden");
  }, []);
  return [shown, set];
}
