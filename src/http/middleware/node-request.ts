import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { RequestParts } from "./request-parts.ts";
import type { BoundRequest, RequestSessions } from "./request-sessions.ts";

/** A request of Node's HTTP server, with what frameworks know about it. */
export interface NodeRequest extends IncomingMessage {
  /** The URL before a router cut its own part off. */
  readonly originalUrl?: string;
  /** Whether it came by https, by the framework's own rules for proxies. */
  readonly secure?: boolean;
}

/** What a node server's response may be given as headers. */
type HeadArguments = readonly (string | OutgoingHttpHeaders | readonly unknown[] | undefined)[];

/**
 * The request with its session, whose answer is written to `response`.
 *
 * The session is bound until the answer is complete, or the client leaves in the middle of it. When the client leaves
 * before the answer begins, the handler still has the session until it ends its answer.
 */
export async function bindNodeRequest<R>(
  requests: RequestSessions<R>,
  incoming: NodeRequest,
  response: ServerResponse,
  request: R,
): Promise<BoundRequest> {
  const bound = await requests.begin(partsOfIncoming(incoming), request);
  announce(response, bound);
  if (bound.isBound) {
    followEnd(response, bound);
    emitInside(incoming, bound);
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

/** Every way to begin an answer goes through `writeHead`, which is the last moment to add a header. */
function announce(response: ServerResponse, bound: BoundRequest): void {
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

/** Sets what `writeHead` was given, by its rules, so that nothing which is added afterwards gets lost to it. */
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

function followEnd(response: ServerResponse, bound: BoundRequest): void {
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

/** The events of a body come from the socket, which knows nothing of the request. */
function emitInside(incoming: NodeRequest, bound: BoundRequest): void {
  const { emit } = incoming;
  incoming.emit = (...event: Parameters<typeof emit>) => bound.run(() => emit.apply(incoming, event));
}
