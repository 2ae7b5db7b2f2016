import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** Where a session came from, and what came from it. */
export function LineageView(_props: SessionProps): ReactNode {
  return null;
}
