import type { RunError } from "../../../agent/run-error.ts";
import type { WireRunEvent } from "../../wire.ts";
import { problemOf } from "../problem.ts";

/** An event as it is sent: an error in it names nothing of the server. */
export function wireEvent(event: WireRunEvent): WireRunEvent {
  if (event.type === "group-finished" && event.outcome.reason === "agent-failed") {
    return { ...event, outcome: { ...event.outcome, error: wireError(event.outcome.error) } };
  }
  if (!("error" in event) || event.error === undefined) return event;
  return { ...event, error: wireError(event.error) };
}

function wireError(error: RunError): RunError {
  const { code, detail: message } = problemOf(error.cause);
  return message === error.message ? error : { code, message };
}
