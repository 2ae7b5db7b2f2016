import type { ReactNode } from "react";
import { useAction } from "../../request/use-action.ts";
import { addressOf } from "../../shell/route.ts";
import { useTalkActions } from "../talk-actions.ts";

/** Tells that the turn of a link is on another branch, and offers to switch to it. */
export function OtherBranchNote({
  sessionId,
  entryId,
}: {
  readonly sessionId: string;
  readonly entryId: string;
}): ReactNode {
  const actions = useTalkActions();
  const move = useAction(async () => actions?.branch(entryId));
  return (
    <output className="transcript-elsewhere">
      <span>{move.error?.message ?? "The turn of this link is on another branch."}</span>
      <button
        type="button"
        className="button small transcript-change"
        disabled={move.busy}
        onClick={() => void move.run()}
      >
        Move there
      </button>
      <a className="small" href={addressOf({ page: "session", id: sessionId, view: "talk", options: {} })}>
        Stay here
      </a>
    </output>
  );
}
