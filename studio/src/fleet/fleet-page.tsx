import type { ReactNode } from "react";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { useTicks } from "../request/use-ticks.ts";
import { BackLink } from "../shell/back-link.tsx";
import { useTitle } from "../shell/use-title.ts";
import { FleetWaiting } from "./fleet-waiting.tsx";
import { FleetWorkers } from "./fleet-workers.tsx";
import { fleetSummary } from "./fleet-summary.ts";
import { FleetTitlesContext, useReadFleetTitles } from "./fleet-titles.ts";
import "./fleet.css";

/** How often the page reloads while it is visible. */
const POLL_MS = 3000;

/** The workers with their runs, and the runs that wait; refreshed automatically. */
export function FleetPage(): ReactNode {
  const client = useClient();
  const fleet = useRevised("fleet", useTicks(POLL_MS), (signal) => client.fleet({ signal }));
  const titles = useReadFleetTitles(fleet.data);
  useTitle("Fleet");
  return (
    <div className="fleet">
      <BackLink />
      <h1>Fleet</h1>
      <RequestBoundary requested={fleet} what="the fleet">
        {(data) => (
          <FleetTitlesContext value={titles}>
            {fleet.error !== null && (
              <p role="alert" className="fleet-problem">
                This may not be up to date: {fleet.error.message}
              </p>
            )}
            <p className="soft">{fleetSummary(data)}</p>
            <FleetWorkers workers={data.workers} />
            <FleetWaiting fleet={data} />
          </FleetTitlesContext>
        )}
      </RequestBoundary>
    </div>
  );
}
