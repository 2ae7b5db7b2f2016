import type { ReactNode } from "react";
import type { FleetView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { useMe } from "../request/use-me.ts";
import { FleetRun } from "./fleet-run.tsx";

type Worker = FleetView["workers"][number];

/** The active workers, with their agents and runs. */
export function FleetWorkers({ workers }: { readonly workers: readonly Worker[] }): ReactNode {
  return (
    <section className="fleet-part" aria-labelledby="fleet-workers">
      <h2 id="fleet-workers">Workers</h2>
      {workers.length === 0 ? (
        <p className="soft">No worker is active. Requested runs wait until one is started.</p>
      ) : (
        <ul className="fleet-list">
          {workers.map((worker, index) => (
            <li key={worker.name ?? index}>
              <OneWorker worker={worker} title={worker.name ?? `Worker ${index + 1}`} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function OneWorker({ worker, title }: { readonly worker: Worker; readonly title: string }): ReactNode {
  const { host, agents, groups, active, concurrency, runs } = worker;
  const more = active - runs.length;
  const seesAll = useMe()?.admin === true;
  return (
    <article className="fleet-card" aria-label={title}>
      <header className="fleet-head">
        <h3>
          <bdi>{visibleText(title)}</bdi>
        </h3>
        {host !== null && <span className="small soft">on {visibleText(host)}</span>}
        <span className="fleet-amount small">
          {active} of {concurrency} runs
        </span>
      </header>
      <p className="fleet-offers">
        {[...agents, ...groups].map((name) => (
          <span key={name} className="tag">
            {visibleText(name)}
          </span>
        ))}
      </p>
      {runs.length > 0 && (
        <ul className="fleet-runs">
          {runs.map(({ runId, since, ...run }) => (
            <li key={`${run.sessionId} ${runId}`}>
              <FleetRun {...run} when="since" time={since} />
            </li>
          ))}
        </ul>
      )}
      {more > 0 && <p className="small soft">{seesAll ? `And ${more} more.` : `And ${more} that you may not see.`}</p>}
    </article>
  );
}
