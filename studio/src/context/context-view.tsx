import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** What the model would see next. */
export function ContextView(_props: SessionProps): ReactNode {
  return null;
}
