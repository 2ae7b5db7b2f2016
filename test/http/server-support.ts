import {
  type ApiToken,
  createServer,
  type ServerInit,
  type ServerLogLine,
  type SkeinServer,
} from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

/** A server that listens on a port, with a memory store unless another is given. */
export interface TestServer extends AsyncDisposable {
  readonly server: SkeinServer;
  readonly manager: SessionManager;
  readonly url: string;
  readonly log: readonly ServerLogLine[];
  /** Sends a request; a body other than a text is sent as JSON. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
}

/** Options of a request. */
export interface CallOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer, read to its end; the body of an event stream is not read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Its parsed JSON, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into is for the test to know.
  readonly body: any;
}

/** Two users and an administrator; each token begins with the user's name. */
export const TOKENS: readonly ApiToken[] = [
  { token: tokenOf("ann"), userId: "ann" },
  { token: tokenOf("bob"), userId: "bob" },
  { token: tokenOf("root"), userId: "root", admin: true },
];

/** The token of a user of `TOKENS`. */
export function tokenOf(userId: string): string {
  return `token-of-${userId}-0123456789`;
}

/** Starts a server on a free port. Disposing closes it, and its store unless one was given. */
export async function startTestServer(init: Partial<ServerInit> = {}): Promise<TestServer> {
  const store = init.manager?.store ?? init.store ?? openMemoryStore();
  const manager = init.manager ?? new SessionManager({ store });
  const log: ServerLogLine[] = [];
  const { store: _store, ...rest } = init;
  const server = await createServer({ logger: (line) => log.push(line), ...rest, manager });
  const url = await server.listen();
  return {
    server,
    manager,
    url,
    log,
    call: (method, path, body, options) => sendRequest(`${url}${path}`, method, body, options),
    async [Symbol.asyncDispose]() {
      await server.close({ drainMs: 100 });
      await manager[Symbol.asyncDispose]();
      if (init.manager === undefined && init.store === undefined) await store.close();
    },
  };
}

/** Sends a request and reads the answer; a body other than a text is sent as JSON. */
export async function sendRequest(
  url: string,
  method: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<Answer> {
  const changes = method !== "GET" && method !== "HEAD" && method !== "DELETE";
  const payload = typeof body === "string" ? body : JSON.stringify(body ?? {});
  const response = await fetch(url, {
    method,
    headers: {
      ...(changes ? { "content-type": "application/json" } : {}),
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
      ...options.headers,
    },
    ...(changes ? { body: payload } : {}),
  });
  const streams = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  if (streams) await response.body?.cancel();
  const text = streams ? "" : await response.text();
  const json = /json$/.test(response.headers.get("content-type")?.split(";")[0] ?? "") && text !== "";
  return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : null };
}
