import type { RunEvent } from "../../../agent/run-event.ts";
import type { GroupEvent } from "../../../group/group-event.ts";
import type { WireRunEvent } from "../../wire.ts";
import { problemOf } from "../problem.ts";

/** An event as it is sent: an error in it becomes a problem, which names nothing of the server. */
export function wireEvent(event: RunEvent | GroupEvent): WireRunEvent {
  if (event.type === "group-finished" && event.outcome.reason === "agent-failed") {
    return { ...event, outcome: { ...event.outcome, error: problemOf(event.outcome.error) } };
  }
  if (!("error" in event) || event.error === undefined) return event as WireRunEvent;
  return { ...event, error: problemOf(event.error) } as WireRunEvent;
}
