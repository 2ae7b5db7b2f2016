import { copyJsonWithout, type JsonObject } from "../internal/json.ts";
import { SessionError } from "../session/errors.ts";
import type { RunError } from "../session/log/run-event.ts";
import { describeThrown } from "./describe-thrown.ts";

const TOLD_ELSEWHERE: ReadonlySet<string> = new Set(["code", "message", "name", "stack", "cause"]);

/** What was thrown as an event tells it. */
export function runErrorOf(cause: unknown): RunError {
  const error = { code: codeOf(cause), message: describeThrown(cause), ...detailsOf(cause) };
  return Object.freeze(Object.defineProperty(error, "cause", { value: cause }));
}

/** What of an error goes on record as how a run ended. */
export function errorRecord(error: unknown): JsonObject {
  const { code, message, details } = runErrorOf(error);
  const name = error instanceof Error ? String(error.name) : "Error";
  return { name, message, ...(code === null ? {} : { code }), ...(details === undefined ? {} : { details }) };
}

function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : null;
}

/** Errors of others may hold requests, keys and whole sockets, so that only our own say more. */
function detailsOf(thrown: unknown): { readonly details?: JsonObject } {
  if (!(thrown instanceof SessionError)) return {};
  try {
    const details = copyJsonWithout(thrown, TOLD_ELSEWHERE);
    return Object.keys(details).length === 0 ? {} : { details };
  } catch {
    return {};
  }
}
