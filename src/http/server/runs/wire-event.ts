import type { RunError } from "../../../agent/run-error.ts";
import type { JsonObject } from "../../../internal/json.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { recordedProblem } from "../problem.ts";

/** An event that was told live as a part of a stream: an error in it names nothing of the server. */
export function liveFrame(event: WireRunEvent): string {
  return frameOf(
    "error" in event && event.error !== undefined ? { ...event, error: recordedError(event.error) } : event,
  );
}

/** How a run failed, from what its log or an event has of it. */
export function recordedError(recorded: unknown): RunError {
  const { code, detail: message } = recordedProblem(recorded);
  const known = (recorded ?? {}) as { readonly message?: unknown; readonly details?: JsonObject };
  const whole = known.message === message && known.details !== undefined;
  return whole ? { code, message, details: known.details } : { code, message };
}

/** An event as a part of a stream, without its id. */
export function frameOf(event: WireRunEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
