import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { RequestParts } from "./request-parts.ts";
import type { BoundRequest, RequestSessions } from "./request-sessions.ts";

/** A request of Node's HTTP server, with the properties that frameworks add. */
export interface NodeRequest extends IncomingMessage {
  /** The URL before a router removed its own prefix. */
  readonly originalUrl?: string;
  /** Whether the request came over https, by the framework's own rules for proxies. */
  readonly secure?: boolean;
}

/** The headers argument of `writeHead`, in all of its forms. */
type HeadArguments = readonly (string | OutgoingHttpHeaders | readonly unknown[] | undefined)[];

/**
 * Binds a request to its session; the answer is written to `response`.
 *
 * The session is bound until the answer is complete, or the client disconnects during it. If the client disconnects before the
 * answer starts, the handler keeps the session until it ends its answer.
 */
export async function bindNodeRequest<R>(
  requests: RequestSessions<R>,
  incoming: NodeRequest,
  response: ServerResponse,
  request: R,
): Promise<BoundRequest> {
  const bound = await requests.begin(partsOfIncoming(incoming), request);
  addHeadersOnWrite(response, bound);
  if (bound.isBound) {
    endWithResponse(response, bound);
    bindEvents(incoming, bound);
  }
  return bound;
}

function partsOfIncoming(incoming: NodeRequest): RequestParts {
  return {
    header: (name) => {
      const value = incoming.headers[name.toLowerCase()];
      return typeof value === "string" ? value : null;
    },
    url: incoming.originalUrl ?? incoming.url ?? "",
    https: incoming.secure ?? (incoming.socket as TLSSocket).encrypted === true,
  };
}

/** Every way to start an answer goes through `writeHead`, which is the last moment to add a header. */
function addHeadersOnWrite(response: ServerResponse, bound: BoundRequest): void {
  const writeHead = response.writeHead as (status: number, message?: string) => ServerResponse;
  response.writeHead = (status: number, ...rest: HeadArguments): ServerResponse => {
    const message = typeof rest[0] === "string" ? rest[0] : undefined;
    setAll(response, typeof rest[0] === "string" ? rest[1] : (rest[0] ?? rest[1]));
    for (const [name, value] of bound.answer()) {
      if (name === "Set-Cookie") response.appendHeader(name, value);
      else response.setHeader(name, value);
    }
    return message === undefined ? writeHead.call(response, status) : writeHead.call(response, status, message);
  };
}

/**
 * Sets the headers given to `writeHead` by its rules, because headers in its arguments would replace those that are added here.
 */
function setAll(response: ServerResponse, headers: HeadArguments[number]): void {
  if (headers === undefined || typeof headers === "string") return;
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) response.setHeader(name, value as OutgoingHttpHeader);
    }
    return;
  }
  const flat: readonly unknown[] = headers.flat(1);
  const pairs = Array.from({ length: flat.length / 2 }, (_, at) => [String(flat[2 * at]), flat[2 * at + 1]] as const);
  for (const [name] of pairs) response.removeHeader(name);
  for (const [name, value] of pairs) response.appendHeader(name, value as string);
}

function endWithResponse(response: ServerResponse, bound: BoundRequest): void {
  const end = response.end as (...given: readonly unknown[]) => ServerResponse;
  response.end = (...given: readonly unknown[]): ServerResponse => {
    try {
      return end.apply(response, [...given]);
    } finally {
      if (response.closed) bound.end();
    }
  };
  response.once("close", () => {
    if (response.headersSent) bound.end();
  });
}

/** The events of a body come from the socket, outside of the request's async context. */
function bindEvents(incoming: NodeRequest, bound: BoundRequest): void {
  const { emit } = incoming;
  incoming.emit = (...event: Parameters<typeof emit>) => bound.run(() => emit.apply(incoming, event));
}
