import type { ReactNode } from "react";

/** What is shown while no session is chosen. */
export function SessionsPage(): ReactNode {
  return null;
}
