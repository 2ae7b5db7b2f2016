import { useCallback, useState } from "react";

const keyOf = (sessionId: string): string => `skein-draft-${sessionId}`;

/** An unsent message; kept until the tab is closed, also while another view is open. */
export function useDraft(sessionId: string): readonly [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(keyOf(sessionId)) ?? "");
  const set = useCallback(
    (next: string) => {
      setText(next);
      try {
        if (next === "") sessionStorage.removeItem(keyOf(sessionId));
        else sessionStorage.setItem(keyOf(sessionId), next);
      } catch {
        // The storage is full: the draft is only kept while the view is open.
      }
    },
    [sessionId],
  );
  return [text, set];
}
