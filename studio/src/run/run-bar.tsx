import type { ReactNode } from "react";
import type { SessionView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useMay } from "../request/use-may.ts";
import type { Run } from "./use-run.ts";
import "./run.css";

/** How the run of a session stands, and what can be done about it; nothing where there is nothing to say. */
export function RunBar({
  session,
  run,
  onRetry,
}: {
  readonly session: SessionView;
  readonly run: Run;
  /** Says again what the failed run was to answer; null where that is not known. */
  readonly onRetry: (() => Promise<void>) | null;
}): ReactNode {
  const client = useClient();
  const may = useMay();
  const stop = useAction(async () => run.id !== null && client.runs.abort(run.id, "Stopped in the studio."));
  const goOn = useAction(run.recover);
  const again = useAction(async () => onRetry?.());
  const error = stop.error ?? goOn.error ?? again.error;
  const problem = error === null ? null : <span role="alert">{error.message}</span>;
  if (run.id !== null) {
    const waits = Object.values(run.state.tools).some(({ state }) => state === "waiting");
    const who = visibleText((run.state.speaker ?? run.agent ?? "It").slice(0, 120));
    return (
      <output className="run-bar">
        <span className="run-bar-text">
          {waits ? `A call waits for ${may.approve ? "your" : "someone's"} approval.` : `${who} is working …`}
        </span>
        {problem}
        {may.run && (
          <button type="button" className="button button-danger" disabled={stop.busy} onClick={() => void stop.run()}>
            Stop
          </button>
        )}
      </output>
    );
  }
  if (session.running !== null && !session.running.here) {
    return (
      <output className="run-bar">Another server works on this session; its turns appear here as they come.</output>
    );
  }
  if (session.openRuns.length > 0 && session.running === null && session.status === "active") {
    return (
      <output className="run-bar run-bar-warning">
        <span className="run-bar-text">The last run was interrupted before it was done.</span>
        {problem}
        {may.run && (
          <button type="button" className="button button-primary" disabled={goOn.busy} onClick={() => void goOn.run()}>
            Go on
          </button>
        )}
      </output>
    );
  }
  if (run.problem === null) return problem === null ? null : <div className="run-bar run-bar-bad">{problem}</div>;
  const stopped = run.problem.code === "ABORTED";
  return (
    <div className={stopped ? "run-bar" : "run-bar run-bar-bad"} role={stopped ? "status" : "alert"}>
      <span className="run-bar-text">
        {stopped ? "The run was stopped; what was said stays." : `The run failed: ${run.problem.message}`}
      </span>
      {problem}
      {may.run && onRetry !== null && session.status === "active" && (
        <button type="button" className="button" disabled={again.busy} onClick={() => void again.run()}>
          Run it again
        </button>
      )}
      <button type="button" className="button button-plain" onClick={run.dismiss}>
        Dismiss
      </button>
    </div>
  );
}
