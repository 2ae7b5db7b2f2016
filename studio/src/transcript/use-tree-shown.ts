import { useCallback, useState } from "react";

const KEY = "skein-tree";

/** Whether the tree is shown, and how that is changed. */
export interface TreeShown {
  readonly shown: boolean;
  readonly show: (shown: boolean) => void;
  /** Takes the tree away where it covers the transcript. */
  readonly uncover: () => void;
}

/**
 * Whether the tree is shown beside the transcript: as it was left, and at first where there is room for it. On a phone it
 * covers the transcript, so that it is there only while it is asked for.
 */
export function useTreeShown(): TreeShown {
  const [shown, setShown] = useState(() => {
    const kept = coversTranscript() ? "hidden" : localStorage.getItem(KEY);
    return kept === null ? window.matchMedia("(min-width: 68rem)").matches : kept === "shown";
  });
  const show = useCallback((next: boolean) => {
    setShown(next);
    if (!coversTranscript()) localStorage.setItem(KEY, next ? "shown" : "hidden");
  }, []);
  const uncover = useCallback(() => {
    if (coversTranscript()) setShown(false);
  }, []);
  return { shown, show, uncover };
}

function coversTranscript(): boolean {
  return window.matchMedia("(max-width: 48rem)").matches;
}
