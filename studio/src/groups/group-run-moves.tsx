import type { ReactNode } from "react";
import { LongText } from "../markdown/long-text.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useMay } from "../request/use-me.ts";
import { ApprovalCard } from "../run/approval-card.tsx";
import type { GroupMove } from "./group-run-state.ts";
import type { WatchedRun } from "./use-group-run.ts";

const STATUS: Readonly<Record<GroupMove["status"], string>> = {
  speaking: "is speaking …",
  spoke: "spoke",
  passed: "passed",
  refused: "refused",
  failed: "failed",
  stopped: "was stopped",
};

/** The moves of a group's current run, live; finished answers are shown among the turns. */
export function GroupRunMoves({ watched: { run, state, error } }: { readonly watched: WatchedRun }): ReactNode {
  const client = useClient();
  const may = useMay();
  const stop = useAction(() => client.runs.cancel(run.sessionId, run.runId));
  const going = state.outcome === null && error === null;
  const speaking = state.moves.findLast(({ status }) => status === "speaking");
  const name = visibleText(run.group ?? "the group");
  return (
    <div className="group-moves">
      <p className="group-actions">
        <strong>{name}</strong>
        <span role="status" className={state.failed ? "group-refused" : "soft"}>
          {state.outcome === null
            ? going
              ? speaking === undefined
                ? "at work …"
                : `${visibleText(speaking.agent)} is speaking …`
              : null
            : visibleText(state.outcome)}
        </span>
        {going && may.run && (
          <button type="button" className="button" disabled={stop.busy} onClick={() => void stop.run()}>
            Stop
          </button>
        )}
      </p>
      {(error ?? stop.error) !== null && (
        <p role="alert" className="group-refused">
          {(error ?? stop.error)?.message}
        </p>
      )}
      {state.waiting.map(({ agent, approval }) => (
        <ApprovalCard key={approval.question} sessionId={run.sessionId} asked={approval} agent={agent} />
      ))}
      <ol className="group-events" aria-label={`What ${name} did`}>
        {state.moves.map((move) => (
          <li key={move.move}>
            <p className="small">
              <strong>{visibleText(move.agent)}</strong> <span className="soft">{STATUS[move.status]}</span>
              {move.tool !== null && <span className="tag">runs {visibleText(move.tool)}</span>}
            </p>
            {move.status !== "spoke" && move.text !== "" && <LongText text={move.text} first={2000} />}
          </li>
        ))}
      </ol>
    </div>
  );
}
