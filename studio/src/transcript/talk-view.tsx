import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** What was said, beside the tree, and where to say more. */
export function TalkView(_props: SessionProps): ReactNode {
  return null;
}
