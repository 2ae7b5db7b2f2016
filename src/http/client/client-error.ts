import type { Problem } from "../wire.ts";

/**
 * A call that the server refused or could not be asked. Branch on `code`: it is the problem's where the server gave one,
 * else `UNEXPECTED_ANSWER` for an answer that is not the server's, `CONNECTION_FAILED` for none, `INVALID_ID` for an id
 * that no path can hold, or `INVALID_OPTION` for an address or a token that cannot be one.
 */
export class ClientError extends Error {
  readonly code: string;
  /** The status of the answer; null where there was none. */
  readonly status: number | null;
  readonly problem: Problem | null;
  /** How long to wait before the next try, where the server says so. */
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

/** The error that an answer stands for. */
export async function errorOf(response: Response): Promise<ClientError> {
  const { status } = response;
  const problem = await problemIn(response);
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
  if (problem !== null) return new ClientError(problem.code, problem.detail, { status, problem, retryAfterMs });
  return new ClientError("UNEXPECTED_ANSWER", `The server answered ${status} without saying why.`, {
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
