import type { ReactNode } from "react";

/** The list of sessions, with search and filters. */
export function SessionsSidebar(_props: { readonly selectedId: string | null }): ReactNode {
  return null;
}
