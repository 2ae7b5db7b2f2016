import type { Problem } from "../wire.ts";

/**
 * A call that failed. Branch on `code`: the code of the server's problem, if the answer has one; `UNEXPECTED_ANSWER` for an
 * answer that is not a Skein server's; `CONNECTION_FAILED` if there was no answer; `INVALID_ID` for an id that cannot be in a
 * path; `INVALID_OPTION` for an invalid URL or token.
 */
export class ClientError extends Error {
  readonly code: string;
  /** The HTTP status of the answer; null if there was no answer. */
  readonly status: number | null;
  readonly problem: Problem | null;
  /** The delay before a retry, if the server gave one. */
  readonly retryAfterMs: number | null;
  constructor(
    code: string,
    message: string,
    about: {
      readonly status?: number;
      readonly problem?: Problem | null;
      readonly retryAfterMs?: number | null;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause });
    this.code = code;
    this.status = about.status ?? null;
    this.problem = about.problem ?? null;
    this.retryAfterMs = about.retryAfterMs ?? null;
  }
  override get name(): string {
    return "ClientError";
  }
}

/** The error for an answer with an error status. */
export async function errorOf(response: Response): Promise<ClientError> {
  const { status } = response;
  const problem = await problemIn(response);
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
  if (problem !== null) return new ClientError(problem.code, problem.detail, { status, problem, retryAfterMs });
  return new ClientError("UNEXPECTED_ANSWER", `The server answered ${status} without a reason.`, {
    status,
    retryAfterMs,
  });
}

async function problemIn(response: Response): Promise<Problem | null> {
  try {
    const given: unknown = await response.json();
    const isProblem = typeof given === "object" && given !== null && "code" in given && "detail" in given;
    return isProblem ? (given as Problem) : null;
  } catch {
    return null;
  }
}
