import type { ReactNode } from "react";
import type { FleetView, RunView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { FleetRun } from "./fleet-run.tsx";
import { groupByRunner } from "./group-by-runner.ts";

/** The runs that no worker has, by agent or group. */
export function FleetWaiting({ fleet }: { readonly fleet: FleetView }): ReactNode {
  const { requested, interrupted } = fleet;
  const groups = groupByRunner([...interrupted.items, ...requested.items]);
  return (
    <section className="fleet-part" aria-labelledby="fleet-waiting">
      <h2 id="fleet-waiting">Waiting</h2>
      {groups.length === 0 ? (
        <p className="soft">No run that you may see is waiting.</p>
      ) : (
        <ul className="fleet-list">
          {groups.map(({ runner, runs }) => (
            <li key={runner}>
              <WaitingFor runner={runner} runs={runs} />
            </li>
          ))}
        </ul>
      )}
      {(requested.next ?? interrupted.next) !== null && <p className="soft">Only the first ones are shown.</p>}
    </section>
  );
}

function WaitingFor({ runner, runs }: { readonly runner: string; readonly runs: readonly RunView[] }): ReactNode {
  const title = runner === "" ? "Any agent" : runner;
  const reasons = [...new Set(runs.map(({ problem }) => problem?.detail ?? null))];
  // The reason that all of them have; otherwise each run has its own.
  const shared = reasons.length === 1 ? (reasons[0] ?? null) : null;
  const kind = runs.some(({ group }) => group !== null) ? "group" : "agent";
  return (
    <article className="fleet-card" aria-label={`For ${title}`}>
      <header className="fleet-head">
        <h3>
          <bdi>{visibleText(title)}</bdi>
        </h3>
        {runs.some(({ withoutWorker }) => withoutWorker) ? (
          <strong className="fleet-lack small">No worker has this {kind}</strong>
        ) : (
          shared !== null && <strong className="fleet-lack small">{visibleText(shared)}</strong>
        )}
        <span className="fleet-amount small">{runs.length === 1 ? "1 run" : `${runs.length} runs`}</span>
      </header>
      <ul className="fleet-runs">
        {runs.map((run) => (
          <li key={`${run.sessionId} ${run.runId}`}>
            <FleetRun sessionId={run.sessionId} userId={run.userId} {...waitOf(run)} />
            {shared === null && run.problem !== null && (
              <p className="fleet-lack small">{visibleText(run.problem.detail)}</p>
            )}
          </li>
        ))}
      </ul>
    </article>
  );
}

/** The time since when, or until when, a run waits. */
function waitOf({ status, notBefore, requestedAt, startedAt }: RunView): { when: string; time: string | null } {
  if (status === "interrupted")
    return { when: startedAt === null ? "interrupted" : "interrupted; started", time: startedAt };
  if (notBefore !== null && Date.parse(notBefore) > Date.now()) return { when: "not before", time: notBefore };
  return { when: "since", time: requestedAt };
}
