import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { SessionError } from "../../session/errors.ts";
import { HttpError } from "./http-error.ts";
import { problemOf, problemResponse } from "./problem.ts";

/** Large enough that a URL of twice the limit still gets a problem document as its answer. */
const HEADER_BYTES_MAX = 128 * 1024;

/** The address to listen on, and the timeouts. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly answerTimeoutMs: number;
}

/** How often slow readers are looked for. */
const CHECK_MS = 1000;

/** Serves the application on a port, with timeouts for slow clients. */
export class NodeListener {
  readonly #server: Server;
  readonly #options: ListenOptions;
  /** The answers in progress. */
  readonly #answers = new Set<ServerResponse>();
  #listening: Promise<string> | null = null;
  #stopping = false;
  #timer: NodeJS.Timeout | null = null;
  /** How many bytes the client of an answer had read, and since when that number has not changed. */
  readonly #taken = new WeakMap<ServerResponse, { readonly taken: number; readonly since: number }>();

  constructor(fetch: (request: Request, env: object) => Response | Promise<Response>, options: ListenOptions) {
    this.#options = options;
    const { headersTimeoutMs, requestTimeoutMs } = options;
    // The adapter replaces the global Response by its own, as it does for every Hono application on Node;
    // with the runtime's, an answer takes nearly twice as long.
    const listener = getRequestListener(fetch, {
      errorHandler: () => problemResponse(new HttpError("INVALID_REQUEST", "The URL or the Host header is invalid.")),
    });
    this.#server = createServer(
      {
        maxHeaderSize: HEADER_BYTES_MAX,
        // The adapter refuses a request without a Host header as well, with a problem document.
        requireHostHeader: false,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: Math.min(1000, Math.ceil(headersTimeoutMs / 2)),
      },
      (request, response) => {
        this.#track(request, response);
        if (hostsOf(request) > 1) refuse(response, "The request has more than one Host header.");
        else void listener(request, response);
      },
    );
    this.#server.on("clientError", refuseUnreadable);
  }

  get url(): string {
    const { host, port } = this.#options;
    const address = this.#server.address();
    const actual = typeof address === "object" && address !== null ? address.port : port;
    return `http://${host.includes(":") ? `[${host}]` : host}:${actual}`;
  }

  /** @throws {SessionError} `INVALID_OPTION` if the host or the port cannot be used. */
  listen(): Promise<string> {
    this.#listening ??= new Promise((resolve, reject) => {
      const { host, port } = this.#options;
      const failed = (cause: NodeJS.ErrnoException): void => {
        this.#listening = null;
        const advice = LISTEN_ADVICE[cause.code ?? ""] ?? "choose another port";
        reject(
          new SessionError("INVALID_OPTION", `The server cannot listen on ${host}:${port}; ${advice}.`, { cause }),
        );
      };
      this.#server.once("error", failed);
      this.#server.listen(port, host, () => {
        this.#server.off("error", failed);
        resolve(this.url);
      });
    });
    return this.#listening;
  }

  /** Accepts no new connections, and closes each one after its pending answer; resolves when the last one is closed. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#stopping = true;
    for (const response of this.#answers) endAfter(response);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  /** Closes all open connections. */
  hangUp(): void {
    this.#server.closeAllConnections();
  }

  #track({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#answers.add(response);
    this.#timer ??= setInterval(() => this.#closeSlowReaders(), CHECK_MS).unref();
    response.once("close", () => {
      this.#answers.delete(response);
      // An answer whose headers were sent before the stop has no `connection: close` header.
      if (this.#stopping) socket.end();
    });
    if (this.#stopping) endAfter(response);
  }

  /**
   * Closes connections whose clients do not read for `answerTimeoutMs` while data is waiting in the socket. There is no limit on
   * the time before an answer, or on the length of a stream.
   */
  #closeSlowReaders(): void {
    const now = performance.now();
    for (const response of this.#answers) {
      const { socket } = response;
      if (socket === null) continue;
      const waiting = socket.writableLength > 0;
      const taken = waiting ? socket.bytesWritten - socket.writableLength : -1;
      const before = this.#taken.get(response);
      if (before?.taken !== taken) this.#taken.set(response, { taken, since: now });
      else if (waiting && now - before.since > this.#options.answerTimeoutMs) socket.destroy();
    }
    if (this.#answers.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** How many `Host` headers a request has: Node keeps the first, and a proxy in front may have used another. */
function hostsOf({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host").length;
}

/** Answers a request that is not passed to the application. */
function refuse(response: ServerResponse, detail: string): void {
  const body = JSON.stringify(problemOf(new HttpError("INVALID_REQUEST", detail)));
  const type = "application/problem+json";
  response.writeHead(400, { connection: "close", "content-type": type, "x-content-type-options": "nosniff" }).end(body);
}

/** Announces that the connection closes after this answer, unless its headers are already sent. */
function endAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("connection", "close");
}

/** Answers bytes that Node cannot parse as a request: too long, too slow, or not HTTP. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, title] = STATUS_LINES[error.code ?? ""] ?? [400, "Bad Request"];
  const refusal = new HttpError("INVALID_REQUEST", "The request is malformed, or was sent too slowly.");
  const body = JSON.stringify({ ...problemOf(refusal), status, title });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const NO_SUCH_HOST = "this machine has no such address, so check the host";

/** Advice by the system's error code of `listen`. */
const LISTEN_ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program uses the port, so choose another one",
  EACCES: "the system does not allow it, so choose a port from 1024 on",
  EADDRNOTAVAIL: NO_SUCH_HOST,
  ENOTFOUND: NO_SUCH_HOST,
  EAI_AGAIN: NO_SUCH_HOST,
  EINVAL: NO_SUCH_HOST,
};

const STATUS_LINES: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout"],
};
