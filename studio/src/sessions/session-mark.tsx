import type { ReactNode } from "react";
import { MARK_NAMES, type SessionMark as Mark } from "./session-status.ts";

/** The state of a session as a coloured tag; nothing for an active one. */
export function SessionMark({ mark }: { readonly mark: Mark }): ReactNode {
  if (mark === "active") return null;
  return <span className={`tag sessions-mark sessions-mark-${mark}`}>{MARK_NAMES[mark]}</span>;
}
