import { useEffect, useState } from "react";

/** A counter that grows at an interval while the page is visible, and when it becomes visible again. */
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
