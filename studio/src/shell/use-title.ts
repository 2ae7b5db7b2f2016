import { useEffect } from "react";

const STUDIO = "Skein studio";

/** Names the tab after what it shows, for as long as it shows it. */
export function useTitle(shown: string | null): void {
  useEffect(() => {
    document.title = shown === null ? STUDIO : `${shown} – ${STUDIO}`;
    return () => {
      document.title = STUDIO;
    };
  }, [shown]);
}
