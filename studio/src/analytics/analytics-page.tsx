import type { ReactNode } from "react";

/** Sums over sessions. */
export function AnalyticsPage(): ReactNode {
  return null;
}
