import { useEffect, useState } from "react";

/** A number that grows every so many milliseconds while the page can be seen, and when it comes back into sight. */
export function useTicks(everyMs: number): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    const tick = (): void => {
      if (document.visibilityState === "visible") setTicks((count) => count + 1);
    };
    const timer = setInterval(tick, everyMs);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [everyMs]);
  return ticks;
}
