import type { ReactNode } from "react";
import type { SessionView } from "skein/client";

/** Exports a session or a branch as a file that opens offline. */
export function ShareButton(_props: { readonly session: SessionView; readonly leafId?: string }): ReactNode {
  return null;
}
