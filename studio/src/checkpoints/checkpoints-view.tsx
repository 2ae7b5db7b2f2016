import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** The checkpoints of a session. */
export function CheckpointsView(_props: SessionProps): ReactNode {
  return null;
}
