import type { ReactNode } from "react";
import type { SessionView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useMay } from "../request/use-me.ts";
import { barOf } from "./run-bar-state.ts";
import type { RunProblem } from "./run-state.ts";
import type { Run } from "./use-run.ts";
import "./run.css";

/** The state of a session's open run and its actions; renders nothing without one. */
export function RunBar({
  session,
  run,
  asks,
  onRetry,
}: {
  readonly session: SessionView;
  readonly run: Run;
  /** Whether it waits for approval. */
  readonly asks: boolean;
  /** Repeats the message that the failed run should have answered; null if unknown. */
  readonly onRetry: (() => Promise<void>) | null;
}): ReactNode {
  const may = useMay();
  const cancel = useAction(run.cancel);
  const goOn = useAction(run.recover);
  const error = cancel.error ?? goOn.error;
  const problem = error === null ? null : <span role="alert">{error.message}</span>;
  const who = visibleText((run.state.speaker ?? run.agent ?? "It").slice(0, 120));
  const bar = barOf(session, run.id, { asks, mayApprove: may.approve, who });
  if (bar === null) return <LastProblem session={session} run={run} onRetry={onRetry} problem={problem} />;
  const { cancels } = bar;
  return (
    <output className={bar.warns ? "run-bar run-bar-warning" : "run-bar"}>
      <span className="run-bar-text">{bar.text}</span>
      {problem}
      {may.run && bar.goesOn && (
        <button type="button" className="button button-primary" disabled={goOn.busy} onClick={() => void goOn.run()}>
          Go on
        </button>
      )}
      {may.run && cancels !== null && (
        <button
          type="button"
          className="button button-danger"
          disabled={cancel.busy}
          onClick={() => void cancel.run(cancels)}
        >
          {run.id === null ? "Cancel the run" : "Stop"}
        </button>
      )}
    </output>
  );
}

/** The problem of the last run. */
function LastProblem({
  session,
  run,
  onRetry,
  problem,
}: Pick<Parameters<typeof RunBar>[0], "session" | "run" | "onRetry"> & { readonly problem: ReactNode }): ReactNode {
  const may = useMay();
  const again = useAction(async () => onRetry?.());
  if (run.problem === null) return problem === null ? null : <div className="run-bar run-bar-bad">{problem}</div>;
  const stopped = STOPPED.has(run.problem.code);
  return (
    <div className={stopped ? "run-bar" : "run-bar run-bar-bad"} role={stopped ? "status" : "alert"}>
      <span className="run-bar-text">
        {stopped ? "The run was stopped. Its messages are kept." : failureOf(run.problem)}
      </span>
      {problem}
      {again.error !== null && <span role="alert">{again.error.message}</span>}
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

/** Of a budget, the note below the bar has the amounts. */
function failureOf({ code, message }: RunProblem): string {
  return code === "BUDGET_EXCEEDED"
    ? "The message was not answered, because a budget is used up."
    : `The run failed: ${message}`;
}

/** The error codes of a stopped run. */
const STOPPED: ReadonlySet<string | null> = new Set(["ABORTED", "CANCELLED"]);
