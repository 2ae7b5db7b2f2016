import type { ReactNode } from "react";
import type { SessionView } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { useLiveSession } from "../session/use-live-session.ts";
import type { Side } from "./read-comparison.ts";

/** Loads and follows the other session of a comparison. */
export function OtherSession({
  id,
  children,
}: {
  readonly id: string;
  readonly children: (side: Side) => ReactNode;
}): ReactNode {
  const live = useLiveSession(id);
  return (
    <RequestBoundary requested={live} what="the session to compare with">
      {(session) => (
        <OtherTree session={session} revision={live.revision}>
          {children}
        </OtherTree>
      )}
    </RequestBoundary>
  );
}

function OtherTree({
  session,
  revision,
  children,
}: {
  readonly session: SessionView;
  readonly revision: number;
  readonly children: (side: Side) => ReactNode;
}): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const tree = useRevised(id, revision, (signal) => client.sessions.tree(id, { folded: true, signal }));
  return (
    <RequestBoundary requested={tree} what="its branches">
      {(known) => children({ session, tree: known, leafId: known.leafId })}
    </RequestBoundary>
  );
}
