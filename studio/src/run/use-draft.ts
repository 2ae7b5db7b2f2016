import { useCallback, useState } from "react";

const keyOf = (sessionId: string): string => `skein-draft-${sessionId}`;

/** A text that is not sent yet; it is still there after another view was looked at, as long as the tab is open. */
export function useDraft(sessionId: string): readonly [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(keyOf(sessionId)) ?? "");
  const set = useCallback(
    (next: string) => {
      setText(next);
      try {
        if (next === "") sessionStorage.removeItem(keyOf(sessionId));
        else sessionStorage.setItem(keyOf(sessionId), next);
      } catch {
        // The storage is full: the text is kept as long as the view is.
      }
    },
    [sessionId],
  );
  return [text, set];
}
