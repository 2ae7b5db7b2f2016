import type { ReactNode } from "react";
import type { SessionProps } from "../session/session-props.ts";

/** Two branches or forks side by side, and their merge. */
export function CompareView(_props: SessionProps): ReactNode {
  return null;
}
