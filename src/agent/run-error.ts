import { copyJsonWithout, type JsonObject } from "../internal/json.ts";
import { SessionError } from "../session/errors.ts";
import type { RunError } from "../session/log/run-event.ts";
import { describeThrown } from "./describe-thrown.ts";

const RECORDED_SEPARATELY: ReadonlySet<string> = new Set(["code", "message", "name", "stack", "cause"]);

/** Converts a thrown value into the error of an event. */
export function runErrorOf(cause: unknown): RunError {
  const error = { code: codeOf(cause), message: describeThrown(cause), ...detailsOf(cause) };
  return Object.freeze(Object.defineProperty(error, "cause", { value: cause }));
}

/** The recorded error of a run's end, with the thrown value, which only the process of the run has. */
export function withThrown(recorded: RunError, thrown: unknown): RunError {
  return Object.freeze(Object.defineProperty({ ...recorded }, "cause", { value: thrown }));
}

/** The parts of an error that are recorded as the end of a run. */
export function errorRecord(error: unknown): JsonObject {
  const { code, message, details } = runErrorOf(error);
  const name = error instanceof Error ? String(error.name) : "Error";
  return { name, message, ...(code === null ? {} : { code }), ...(details === undefined ? {} : { details }) };
}

function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : null;
}

/** Errors of other packages may contain requests, keys and sockets, so only our own errors contribute details. */
function detailsOf(thrown: unknown): { readonly details?: JsonObject } {
  if (!(thrown instanceof SessionError)) return {};
  try {
    const details = copyJsonWithout(thrown, RECORDED_SEPARATELY);
    return Object.keys(details).length === 0 ? {} : { details };
  } catch {
    return {};
  }
}
