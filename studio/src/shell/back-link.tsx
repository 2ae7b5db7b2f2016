import type { ReactNode } from "react";
import { addressOf } from "./route.ts";

/** A link to the session list, for narrow windows that do not show the list. */
export function BackLink(): ReactNode {
  return (
    <a className="back-link" href={addressOf({ page: "sessions" })}>
      <span aria-hidden="true">‹ </span>Sessions
    </a>
  );
}
