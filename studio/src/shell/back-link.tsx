import type { ReactNode } from "react";
import { addressOf } from "./route.ts";

/** The way back to the list of sessions, where a narrow window does not show it. */
export function BackLink(): ReactNode {
  return (
    <a className="back-link" href={addressOf({ page: "sessions" })}>
      <span aria-hidden="true">‹ </span>Sessions
    </a>
  );
}
