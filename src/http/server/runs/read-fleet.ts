import type { FleetView } from "../../run-wire.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { listOpenRuns } from "./run-views.ts";

/** Of how many sessions the runs are shown that wait. */
const WAITING_SESSIONS_MAX = 50;

/** The fleet, as a caller may see it. Costs what is shown, and a count of what waits. */
export async function readFleet(services: ServerServices, caller: Caller): Promise<FleetView> {
  const { roster, store } = services;
  const pageOf = (state: "requested" | "interrupted"): Promise<FleetView["requested"]> =>
    listOpenRuns(services, { state, limit: WAITING_SESSIONS_MAX }, { actor: caller });
  roster.ask();
  return {
    waiting: await store.count({ dueBefore: new Date().toISOString() }),
    requested: await pageOf("requested"),
    interrupted: await pageOf("interrupted"),
    workers: roster.workers.map((worker) => (caller.admin ? worker : seenBy(caller, worker))),
  };
}

function seenBy({ userId }: Caller, worker: FleetView["workers"][number]): FleetView["workers"][number] {
  return { ...worker, name: null, host: null, runs: worker.runs.filter((run) => run.userId === userId) };
}
