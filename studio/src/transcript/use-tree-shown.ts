import { useCallback, useState } from "react";

const KEY = "skein-tree";

/** Whether the tree is shown, and functions to change that. */
export interface TreeShown {
  readonly shown: boolean;
  readonly show: (shown: boolean) => void;
  /** Hides the tree if it covers the transcript. */
  readonly uncover: () => void;
}

/**
 * Whether the tree is shown beside the transcript: as the user left it, at first if there is room. On a phone it covers
 * the transcript, so it is only shown on request.
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
