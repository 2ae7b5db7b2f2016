import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** The branches of a session as a graph. */
export function TreePanel(_props: SessionProps): ReactNode {
  return null;
}
