import { SessionError, type SessionErrorCode, StoreUnreachableError } from "../../session/errors.ts";

/** Error messages by SQLSTATE. The text follows the name of the database. */
const STATES: Readonly<Record<string, string>> = {
  "28P01": "refused the password; check the user and the password of the URL",
  "28000": "refused the user; check the user of the URL and the server's pg_hba.conf",
  "3D000": "does not exist; create it, or name another one in the URL",
  "42501": "does not allow this user to do that; grant the user what the docs of the PostgreSQL store list",
  "53100": "has no room left on its disk; make room and try again",
  "53200": "is out of memory; try again",
  "53300": "accepts no more connections; raise max_connections, or open fewer connections",
  "57014": "took longer than the statement timeout allows; try again, or raise statementTimeoutMs",
  "57P01": "closed the connection, because an administrator ended it; try again",
  "57P02": "lost the connection, because the server crashed; try again",
  "57P03": "is starting up or shutting down; try again in a moment",
  "57P05": "closed the connection, because it was idle for too long; try again",
  "25P03": "closed the connection, because its transaction was idle for too long; try again",
  "3F000": "no longer has the schema of this store; open the store again",
  "42P01": "no longer has the tables of this store; open the store again",
  "22P05": "cannot hold a character of the text, as its encoding is not UTF8; create a database with the encoding UTF8",
};

const UNREACHABLE = "cannot be reached; check the host and the port of the URL, and that the server runs";
const UNREACHABLE_CODES =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|CONNECT_TIMEOUT|CALL_TIMEOUT)$/;
/** The code of our error for a statement without an answer in time, although the server should have cancelled it before. */
export const CALL_TIMEOUT = "CALL_TIMEOUT";
const LOST =
  "lost the connection, so it is unknown whether the last call took effect; read the session, or repeat the call with the same ids";
const LOST_CODES = /^(?:ECONNRESET|EPIPE|CONNECTION_(?:CLOSED|DESTROYED|ENDED))$/;
const LOST_MESSAGES = /^(?:Connection terminated|Client has encountered a connection error|Client was closed)/;
const LOST_STATES = ["57P01", "57P02", "57P03", "57P05", "25P03", "08000", "08003", "08006"];
const CONNECTIONS_USED = "53300";
const STATEMENT_TIMEOUT = "57014";
const READ_ONLY_STATE = "25006";

/** Converts an error of a client to a `SessionError`. Other errors, such as a `TypeError`, are returned unchanged. */
export function postgresFailure(error: unknown, address: string): unknown {
  if (!(error instanceof Error) || error instanceof SessionError) return error;
  const code = codeOf(error);
  if (code === READ_ONLY_STATE) {
    return failure("READ_ONLY", address, "is read-only; connect to one that accepts writes", error);
  }
  if (code === "42704" && /role/.test(error.message))
    return failure("STORE_FAILED", address, STATES["28000"] as string, error);
  if (isUnreachable(error)) return failure("STORE_FAILED", address, UNREACHABLE, error);
  const problem = STATES[code] ?? (isLost(error) ? LOST : null);
  if (problem !== null) return failure("STORE_FAILED", address, problem, error);
  if (!/^[0-9A-Z]{5}$/.test(code)) return error;
  return failure("STORE_FAILED", address, `failed with ${code}: ${error.message.replace(/\.$/, "")}`, error);
}

/** Whether an error, of Skein or of a client, means that a connection failed or was lost. */
export function isConnectionLost(error: unknown): boolean {
  const cause = error instanceof SessionError ? error.cause : error;
  if (!(cause instanceof Error)) return false;
  return isUnreachable(cause) || isLost(cause) || hasState(cause, ...LOST_STATES);
}

/** Whether a call may succeed if it is repeated in a moment: the connection was lost, or the server accepts no more of them. */
export function isWorthRetry(error: unknown): boolean {
  // After a timeout, the caller has waited long enough already.
  return (isConnectionLost(error) && !hasState(error, CALL_TIMEOUT)) || hasState(error, CONNECTIONS_USED);
}

/** Whether the database rolled a transaction back because of a conflict with another one (serialization failure, deadlock). */
export function isRetryable(error: unknown): boolean {
  return hasState(error, "40001", "40P01");
}

/** Whether an error has one of the given SQLSTATEs. */
export function hasState(error: unknown, ...states: readonly string[]): boolean {
  const cause = error instanceof SessionError ? error.cause : error;
  return cause instanceof Error && states.includes(codeOf(cause));
}

function failure(code: SessionErrorCode, address: string, problem: string, cause: Error): SessionError {
  const message = `The PostgreSQL database ${address} ${problem}.`;
  return isConnectionLost(cause) || hasState(cause, CONNECTIONS_USED, STATEMENT_TIMEOUT)
    ? new StoreUnreachableError(message, { cause })
    : new SessionError(code, message, { cause });
}

function isLost(error: Error): boolean {
  return LOST_CODES.test(codeOf(error)) || LOST_MESSAGES.test(error.message);
}

/** If a host has several addresses, the errors of all of them come in one `AggregateError` without a code. */
function isUnreachable(error: Error): boolean {
  if (/timeout exceeded when trying to connect/.test(error.message)) return true;
  const all = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return all.some((each) => UNREACHABLE_CODES.test(codeOf(each)));
}

function codeOf(error: Error | undefined): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
}
