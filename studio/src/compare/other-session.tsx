import type { ReactNode } from "react";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useLiveSession } from "../session/use-live-session.ts";
import { useRevised } from "../request/use-revised.ts";
import type { Side } from "./read-comparison.ts";

/** Follows the session that another is compared with. */
export function OtherSession({
  id,
  children,
}: {
  readonly id: string;
  readonly children: (side: Side) => ReactNode;
}): ReactNode {
  const client = useClient();
  const live = useLiveSession(id);
  const tree = useRevised(id, live.revision, (signal) => client.sessions.tree(id, { signal }));
  return (
    <Shown requested={live} what="the session to compare with">
      {(session) => (
        <Shown requested={tree} what="its branches">
          {(known) => children({ session, tree: known, leafId: known.leafId })}
        </Shown>
      )}
    </Shown>
  );
}
