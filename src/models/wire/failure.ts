import { ModelError, type ModelFailure } from "../../agent/model/model-error.ts";
import { SessionError } from "../../session/errors.ts";
import { type Fields, fieldsOf, numberOf, stringOf } from "./json-reader.ts";

const DETAIL_CHARACTERS_MAX = 500;
const CAUSES_MAX = 8;

const OVERFLOW =
  /context_length_exceeded|context (length|window|limit|size)|(prompt|input|request) (is|was) too long|maximum context/i;
const OVERFLOW_STATUSES: ReadonlySet<number | undefined> = new Set([undefined, 400, 413, 422]);
const BROKEN_CONNECTION =
  /ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR|socket|terminated|fetch failed|other side closed/i;

/** An error that the provider sent inside a response with a success status. */
export class WireError extends Error {
  /** The provider's own error: its type, code and message. */
  readonly error: Fields;
  constructor(error: Fields) {
    super(stringOf(error["message"]));
    this.error = error;
  }
}

/** The error for an answer that does not follow the provider's protocol. */
export function malformed(provider: string, problem: string, cause?: unknown): ModelError {
  return new ModelError("malformed", `The answer of ${provider} cannot be read: ${problem}.`, { provider, cause });
}

/** The error for a stream that ended before its answer was complete. */
export function cutShort(provider: string): ModelError {
  return new ModelError("connection", `The answer of ${provider} broke off before its end.`, { provider });
}

/** Converts an error of a client to a `ModelError`. Our own errors are returned unchanged. */
export function modelFailure(thrown: unknown, provider: string, secret: string | undefined): Error {
  if (thrown instanceof SessionError) return thrown;
  const found = fieldsOf(thrown);
  const told = innerError(found);
  const status = numberOf(found["status"]) ?? statusCode(told["code"]);
  const kind = kindOf(thrown, told, status);
  const message = sentence(kind, provider, status, detailOf(thrown, told));
  const retryAfterMs = retryAfter(found["headers"]);
  return new ModelError(kind, secret === undefined ? message : message.replaceAll(secret, "[key]"), {
    provider,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    // A provider may repeat a rejected key in its message, and loggers print causes: such a cause is dropped.
    ...(mentions(thrown, secret) ? {} : { cause: thrown }),
  });
}

/** The error object: one API nests it in another object, the other does not. */
function innerError(found: Fields): Fields {
  const outer = fieldsOf(found["error"]);
  return Object.hasOwn(outer, "error") ? fieldsOf(outer["error"]) : outer;
}

/** The HTTP status in an error code: gateways put the status of the failed server there. */
function statusCode(code: unknown): number | undefined {
  const value = numberOf(code);
  return value !== undefined && value >= 400 && value < 600 ? value : undefined;
}

function kindOf(thrown: unknown, told: Fields, status: number | undefined): ModelFailure {
  const type = `${stringOf(told["type"])} ${stringOf(told["code"])}`;
  const text = `${type} ${stringOf(told["message"])}`;
  if (OVERFLOW_STATUSES.has(status) && OVERFLOW.test(text)) return "context_overflow";
  if (status === 529 || /overloaded/.test(type)) return "overloaded";
  // Retrying does not help an account without credit.
  if (/insufficient_quota|billing/.test(type)) return "other";
  if (status !== undefined) return kindOfStatus(status);
  if (type.trim() !== "" || Object.hasOwn(told, "message")) return kindOfType(type);
  return kindOfThrown(thrown);
}

function kindOfStatus(status: number): ModelFailure {
  if (status === 429) return "rate_limit";
  if (status === 408) return "timeout";
  if (status === 401 || status === 403) return "authentication";
  if (status === 413) return "context_overflow";
  if (status >= 500) return "server";
  return status >= 400 ? "invalid_request" : "other";
}

function kindOfType(type: string): ModelFailure {
  if (/rate_limit/.test(type)) return "rate_limit";
  if (/timeout/.test(type)) return "timeout";
  if (/authentication|permission|api_key/.test(type)) return "authentication";
  if (/invalid|not_found|unsupported/.test(type)) return "invalid_request";
  return /server|api_error|internal|unavailable/.test(type) ? "server" : "other";
}

/** Classifies a client's error by its class name and the system error that caused it; it has no code of its own. */
function kindOfThrown(thrown: unknown): ModelFailure {
  if (thrown instanceof SyntaxError) return "malformed";
  for (const error of causesOf(thrown)) {
    const name = `${stringOf(error["name"])} ${error.constructor?.name ?? ""} ${stringOf(error["code"])}`;
    const text = `${name} ${stringOf(error["message"])}`;
    if (/timed? ?out/i.test(text)) return "timeout";
    if (/APIConnectionError/.test(name) || BROKEN_CONNECTION.test(text)) return "connection";
  }
  return "other";
}

function causesOf(thrown: unknown): Fields[] {
  const found: Fields[] = [];
  let error = thrown;
  while (typeof error === "object" && error !== null && found.length < CAUSES_MAX) {
    found.push(error as Fields);
    error = (error as Fields)["cause"];
  }
  return found;
}

function detailOf(thrown: unknown, told: Fields): string {
  const said = stringOf(told["message"]);
  if (said !== "") return said;
  const deepest = causesOf(thrown).findLast((error) => stringOf(error["message"]) !== "");
  return stringOf(deepest?.["message"]) || String(thrown);
}

function sentence(kind: ModelFailure, provider: string, status: number | undefined, detail: string): string {
  const code = status === undefined ? "" : ` (${status})`;
  const beginnings: Record<ModelFailure, string> = {
    rate_limit: `${provider} asks to slow down${code}`,
    overloaded: `${provider} is overloaded${code}`,
    connection: `The connection to ${provider} failed`,
    timeout: `${provider} did not answer in time${code}`,
    server: `${provider} failed${code}`,
    context_overflow: `The request is longer than the model of ${provider} can take${code}`,
    authentication: `${provider} does not accept the key, check the option apiKey${code}`,
    invalid_request: `${provider} refuses the request${code}`,
    malformed: `The answer of ${provider} cannot be read`,
    other: `${provider} gave no answer${code}`,
  };
  const cut = detail.length > DETAIL_CHARACTERS_MAX ? `${detail.slice(0, DETAIL_CHARACTERS_MAX)}…` : detail;
  const text = `${beginnings[kind]}: ${cut.replace(/\s+/g, " ").trim()}`;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function retryAfter(headers: unknown): number | undefined {
  if (!(headers instanceof Headers)) return undefined;
  const exact = Number.parseFloat(headers.get("retry-after-ms") ?? "");
  if (Number.isFinite(exact)) return Math.max(0, exact);
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const ms = /^\s*[\d.]+\s*$/.test(text) ? Number.parseFloat(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function mentions(thrown: unknown, secret: string | undefined): boolean {
  if (secret === undefined) return false;
  return causesOf(thrown).some((error) => {
    const headers = error["headers"];
    const texts = [error["message"], error["stack"], error["error"], headers instanceof Headers ? [...headers] : null];
    return (JSON.stringify(texts) ?? "").includes(secret);
  });
}
