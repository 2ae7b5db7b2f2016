import { type ReactNode, useCallback } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { addressOf } from "../shell/route.ts";

/** Tells that the shown session was deleted elsewhere, and offers to restore it. */
export function DeletedNote({ id, onRestored }: { readonly id: string; readonly onRestored: () => void }): ReactNode {
  const client = useClient();
  const restore = useAction(useCallback(() => client.sessions.undelete(id).then(onRestored), [client, id, onRestored]));
  return (
    <p role="alert" className="session-gone">
      <span>{restore.error?.message ?? "This session was deleted. You see its last state."}</span>
      <button type="button" className="button" disabled={restore.busy} onClick={() => void restore.run()}>
        Restore it
      </button>
      <a href={addressOf({ page: "sessions" })}>Back to the sessions</a>
    </p>
  );
}
