import { type ReactNode, useCallback } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { addressOf } from "../shell/route.ts";

/** Says that the session that is shown was deleted by someone else, and offers to bring it back. */
export function GoneNote({ id, onRestored }: { readonly id: string; readonly onRestored: () => void }): ReactNode {
  const client = useClient();
  const restore = useAction(useCallback(() => client.sessions.undelete(id).then(onRestored), [client, id, onRestored]));
  return (
    <p role="alert" className="session-gone">
      <span>{restore.error?.message ?? "This session was deleted. What you see is how it was."}</span>
      <button type="button" className="button" disabled={restore.busy} onClick={() => void restore.run()}>
        Restore it
      </button>
      <a href={addressOf({ page: "sessions" })}>Back to the sessions</a>
    </p>
  );
}
