import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** Who spoke in a session of several agents. */
export function GroupView(_props: SessionProps): ReactNode {
  return null;
}
