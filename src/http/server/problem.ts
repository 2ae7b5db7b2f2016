import { STATUS_CODES } from "node:http";
import { SessionError, type SessionErrorCode } from "../../session/errors.ts";
import type { Problem } from "../wire.ts";
import { HttpError } from "./http-error.ts";

/** The HTTP status of each `SessionError` code. */
const STATUS: Readonly<Record<SessionErrorCode, number>> = {
  INVALID_ID: 400,
  INVALID_HEADER: 400,
  INVALID_ENTRY: 400,
  INVALID_VALUE: 400,
  INVALID_OPTION: 400,
  INVALID_QUERY: 400,
  INVALID_TOOL: 400,
  LINEAGE: 400,
  UNKNOWN_ENTRY: 404,
  SESSION_NOT_FOUND: 404,
  CHECKPOINT_NOT_FOUND: 404,
  BLOB_NOT_FOUND: 404,
  QUESTION_NOT_FOUND: 404,
  AGENT_NOT_FOUND: 404,
  MODEL_NOT_FOUND: 404,
  TOOL_NOT_FOUND: 404,
  TOO_LARGE: 413,
  MODEL_FAILED: 502,
  OUTPUT_INVALID: 502,
  PRICE_UNKNOWN: 422,
  BUDGET_EXCEEDED: 429,
  SUMMARY_FAILED: 502,
  SANDBOX_FAILED: 502,
  STORE_FAILED: 503,
  STORE_CLOSED: 503,
  DRIVER_MISSING: 503,
  DRIVER_VERSION: 503,
  KEY_MISSING: 503,
  DAMAGED: 500,
  NOT_A_SESSION: 500,
  UNSUPPORTED_VERSION: 500,
  NO_SESSION: 500,
  NOT_SUPPORTED: 501,
  ERASED: 410,
  ENTRY_EXISTS: 409,
  SESSION_EXISTS: 409,
  SESSION_CLOSED: 409,
  SESSION_EXPIRED: 409,
  SESSION_SUSPENDED: 409,
  SESSION_BUSY: 409,
  TRANSITION: 409,
  CAPACITY: 409,
  SESSIONS_QUOTA_EXCEEDED: 409,
  BYTES_QUOTA_EXCEEDED: 409,
  BLOBS_QUOTA_EXCEEDED: 409,
  CONFLICT: 409,
  LEASE_LOST: 409,
  CHECKPOINT_EXISTS: 409,
  READ_ONLY: 409,
  ACTIVE_PATH: 409,
  CANCELLED: 409,
  NO_SANDBOX: 409,
  ISOLATION_MISSING: 409,
  RUN_ENDED: 409,
  RUN_OPEN: 409,
  APPROVAL_NEEDED: 409,
  ABORTED: 409,
  DEADLOCK: 409,
  DEADLINE: 409,
};

/** Replaces messages that may name files, hosts or providers of the server. */
const DETAIL: Readonly<Partial<Record<SessionErrorCode, string>>> = {
  STORE_FAILED: "The store failed; retry later.",
  STORE_CLOSED: "The server is shutting down; retry later.",
  DRIVER_MISSING: "A package that this request needs is not installed on the server; its log names the package.",
  DRIVER_VERSION: "A package of the server has an unsupported version; its log names the package.",
  KEY_MISSING: "The server has no key for that model.",
  SANDBOX_FAILED: "The sandbox failed; the reason is in the server's log.",
  DAMAGED: "The stored session is damaged; the server's operator can check it with skein doctor.",
  NOT_A_SESSION: "The data stored under that id is not a session.",
  UNSUPPORTED_VERSION: "The session was written by a later version of Skein.",
};

/**
 * Turns an error into a problem document. An error that is neither a `SessionError` nor an `HttpError` is answered without any
 * detail; the log has it under `requestId`.
 */
export function problemOf(error: unknown, requestId: string | null = null): Problem {
  if (error instanceof HttpError) {
    const { code, status, message, problems } = error;
    return { ...problemWith(code, status, message), ...(problems.length === 0 ? {} : { problems }) };
  }
  if (error instanceof SessionError) {
    return sessionProblem(error.code, error.message);
  }
  const under = requestId === null ? "" : ` under ${requestId}`;
  return problemWith("INTERNAL", 500, `Internal error; the server's log has the details${under}.`);
}

/** Turns the recorded failure of a run into a problem document, by the same rules. */
export function recordedProblem(recorded: unknown): Problem {
  if (typeof recorded === "string") return sessionProblem("ABORTED", recorded);
  const { code, message } = (recorded ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const known = typeof code === "string" && Object.hasOwn(STATUS, code) && typeof message === "string";
  return known ? sessionProblem(code as SessionErrorCode, message) : problemOf(null);
}

/** The answer with the problem document of an error. */
export function problemResponse(error: unknown, requestId: string | null = null): Response {
  const problem = problemOf(error, requestId);
  const headers = error instanceof HttpError ? error.headers : {};
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...headers, "content-type": "application/problem+json" },
  });
}

function sessionProblem(code: SessionErrorCode, message: string): Problem {
  return problemWith(code, STATUS[code], DETAIL[code] ?? message);
}

function problemWith(code: string, status: number, detail: string): Problem {
  return { type: "about:blank", title: STATUS_CODES[status] ?? "Error", status, detail, code };
}
