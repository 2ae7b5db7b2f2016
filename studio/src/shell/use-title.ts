import { useEffect } from "react";

const STUDIO = "Skein studio";

/** Sets the title of the tab while the component is mounted. */
export function useTitle(shown: string | null): void {
  useEffect(() => {
    document.title = shown === null ? STUDIO : `${shown} – ${STUDIO}`;
    return () => {
      document.title = STUDIO;
    };
  }, [shown]);
}
