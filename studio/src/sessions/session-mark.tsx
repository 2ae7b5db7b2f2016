import type { ReactNode } from "react";
import { MARK_NAMES, type SessionMark as Mark } from "./session-look.ts";

/** How a session stands, in a word and a colour; an active one needs none. */
export function SessionMark({ mark }: { readonly mark: Mark }): ReactNode {
  if (mark === "active") return null;
  return <span className={`tag sessions-mark sessions-mark-${mark}`}>{MARK_NAMES[mark]}</span>;
}
