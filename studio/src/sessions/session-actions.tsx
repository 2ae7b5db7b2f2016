import type { ReactNode } from "react";
import type { SessionView } from "skein/client";

/** What can be done with a session as a whole. */
export function SessionActions(_props: { readonly session: SessionView; readonly onChange: () => void }): ReactNode {
  return null;
}
