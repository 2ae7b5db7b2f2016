/** Error codes of the server, beside those of `SessionError`; docs/errors.md explains each. */
export type HttpErrorCode =
  | "INVALID_REQUEST"
  | "UNAUTHORIZED"
  | "TOKEN_EXPIRED"
  | "FORBIDDEN"
  | "FOREIGN_HOST"
  | "FOREIGN_ORIGIN"
  | "ROUTE_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "MODEL_NOT_FOUND"
  | "AGENT_NOT_FOUND"
  | "GROUP_NOT_FOUND"
  | "RUN_NOT_FOUND"
  | "EVENT_ID_UNKNOWN"
  | "EVENT_GONE"
  | "BODY_TOO_LARGE"
  | "RANGE_NOT_SATISFIABLE"
  | "URL_TOO_LONG"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "RATE_LIMITED"
  | "TOO_MANY_BODIES"
  | "TOO_MANY_ANSWERS"
  | "TOO_MANY_STREAMS"
  | "OVERLOADED"
  | "DRAINING"
  | "TOKENS_UNAVAILABLE"
  | "INTERNAL";

const STATUS: Readonly<Record<HttpErrorCode, number>> = {
  INVALID_REQUEST: 400,
  UNAUTHORIZED: 401,
  TOKEN_EXPIRED: 401,
  FORBIDDEN: 403,
  FOREIGN_HOST: 403,
  FOREIGN_ORIGIN: 403,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  MODEL_NOT_FOUND: 404,
  AGENT_NOT_FOUND: 404,
  GROUP_NOT_FOUND: 404,
  RUN_NOT_FOUND: 404,
  EVENT_ID_UNKNOWN: 400,
  EVENT_GONE: 410,
  BODY_TOO_LARGE: 413,
  RANGE_NOT_SATISFIABLE: 416,
  URL_TOO_LONG: 414,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  TOO_MANY_BODIES: 429,
  TOO_MANY_ANSWERS: 429,
  TOO_MANY_STREAMS: 429,
  OVERLOADED: 503,
  DRAINING: 503,
  TOKENS_UNAVAILABLE: 503,
  INTERNAL: 500,
};

/** An invalid part of a request. */
export interface RequestProblem {
  readonly path: string;
  readonly message: string;
}

/** A request that the server refuses. Nothing was changed. */
export class HttpError extends Error {
  readonly code: HttpErrorCode;
  readonly status: number;
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly problems: readonly RequestProblem[];
  constructor(
    code: HttpErrorCode,
    message: string,
    options: {
      readonly headers?: Readonly<Record<string, string>>;
      readonly problems?: readonly RequestProblem[];
    } = {},
  ) {
    super(message);
    this.code = code;
    this.status = STATUS[code];
    this.headers = options.headers ?? {};
    this.problems = options.problems ?? [];
  }
}
