import { type FormEvent, type ReactNode, useState } from "react";
import type { Approval } from "../../../src/agent/run-event.ts";
import { LongText } from "../markdown/long-text.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { MAY_NOT, useMay } from "../request/use-may.ts";
import type { RunCalls } from "./run-context.ts";
import "./run.css";

/** Asks whether a call may run. */
export function ApprovalCard({
  approval,
  calls,
}: {
  readonly approval: Approval;
  readonly calls: RunCalls;
}): ReactNode {
  const [reason, setReason] = useState("");
  const { callId } = approval;
  const may = useMay();
  const decide = useAction((approved: boolean) =>
    approved ? calls.approve(callId) : calls.deny(callId, reason.trim()),
  );
  const deny = (event: FormEvent): void => {
    event.preventDefault();
    void decide.run(false);
  };
  return (
    <form className="run-approval" aria-label={`Approval of ${approval.name}`} onSubmit={deny}>
      <p>
        May <code>{visibleText(approval.name)}</code> run with this?
      </p>
      <LongText text={JSON.stringify(approval.arguments, null, 2)} first={4000} />
      <div className="run-approval-choice">
        <button
          type="button"
          className="button button-primary"
          disabled={decide.busy || !may.approve}
          onClick={() => void decide.run(true)}
        >
          Approve
        </button>
        <input
          className="field"
          placeholder="Why not (optional)"
          aria-label="Reason for denying"
          value={reason}
          disabled={!may.approve}
          onChange={(event) => setReason(event.target.value)}
        />
        <button type="submit" className="button button-danger" disabled={decide.busy || !may.approve}>
          Deny
        </button>
      </div>
      {!may.approve && <p className="small soft">{MAY_NOT.approve}</p>}
      {decide.error !== null && <p role="alert">{decide.error.message}</p>}
    </form>
  );
}
