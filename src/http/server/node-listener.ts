import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { SessionError } from "../../session/errors.ts";
import { HttpError } from "./http-error.ts";
import { problemOf, problemResponse } from "./problem.ts";

/** So much that a URL of twice the usual size is still told what is wrong with it. */
const HEADER_BYTES_MAX = 128 * 1024;

/** Where and how to listen. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly answerTimeoutMs: number;
}

/** How often it is looked who does not read. */
const LOOK_MS = 1000;

/** The application on a port of this machine, with time limits against clients that dawdle. */
export class NodeListener {
  readonly #server: Server;
  readonly #options: ListenOptions;
  /** The answers that are not complete yet. */
  readonly #answers = new Set<ServerResponse>();
  #listening: Promise<string> | null = null;
  #stopping = false;
  #timer: NodeJS.Timeout | null = null;
  /** How much clients had taken when something was taken last. */
  readonly #taken = new WeakMap<ServerResponse, { readonly taken: number; readonly since: number }>();

  constructor(fetch: (request: Request, env: object) => Response | Promise<Response>, options: ListenOptions) {
    this.#options = options;
    const { headersTimeoutMs, requestTimeoutMs } = options;
    // The adapter replaces the global Response by its own, as it does for every Hono application on Node;
    // with the runtime's, an answer takes nearly twice as long.
    const listener = getRequestListener(fetch, {
      errorHandler: () => problemResponse(new HttpError("INVALID_REQUEST", "The URL or the Host cannot be read.")),
    });
    this.#server = createServer(
      {
        maxHeaderSize: HEADER_BYTES_MAX,
        // The adapter refuses a request without a Host, too, and then with a problem.
        requireHostHeader: false,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: Math.min(1000, Math.ceil(headersTimeoutMs / 2)),
      },
      (request, response) => {
        this.#follow(request, response);
        void listener(request, response);
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

  /** @throws {SessionError} `INVALID_OPTION` when the host or the port cannot be had. */
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

  /** Takes no connection any more, and ends each after the answer it waits for; resolves when the last one is closed. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#stopping = true;
    for (const response of this.#answers) endAfter(response);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  /** Closes what is still open. */
  hangUp(): void {
    this.#server.closeAllConnections();
  }

  #follow({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#answers.add(response);
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    response.once("close", () => {
      this.#answers.delete(response);
      // One that had begun when the server was told to stop could not say that it is the last of its connection.
      if (this.#stopping) socket.end();
    });
    if (this.#stopping) endAfter(response);
  }

  /**
   * Closes connections whose clients do not read: what was written at once must be taken in time. A route may take as long
   * as it needs before it answers, and a stream may last.
   */
  #look(): void {
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

/** Tells the client that nothing more is taken from its connection, where that can still be told. */
function endAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("connection", "close");
}

/** Node cannot make a request of what came in: too long, too slow, or not HTTP. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, title] = STATUS_LINES[error.code ?? ""] ?? [400, "Bad Request"];
  const refusal = new HttpError("INVALID_REQUEST", "This is not a request that can be read, or it came too slowly.");
  const body = JSON.stringify({ ...problemOf(refusal), status, title });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const NO_SUCH_HOST = "this machine has no such address, so check the host";

/** What helps, by the system's reason for not listening. */
const LISTEN_ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program does, so choose another port",
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
