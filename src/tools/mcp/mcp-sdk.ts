import { withoutStop } from "../../internal/trim-text.ts";
import { VERSION } from "../../internal/version.ts";
import { SessionError, show } from "../../session/errors.ts";
import { streamWatch } from "./stream-watch.ts";

/** The members of a connected MCP SDK client that are used here. */
export interface McpClient {
  request(request: never, schema: never, options?: never): Promise<unknown>;
}

/** An MCP server: a program to start, a URL to connect to, or a connected client. */
export type McpServer =
  | {
      readonly command: string;
      readonly args?: readonly string[];
      /** Environment variables for the program, in addition to a few standard ones (PATH, HOME, …). */
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | { readonly url: string | URL; readonly headers?: Readonly<Record<string, string>> }
  | { readonly client: McpClient };

/** A connection to a server. */
export interface McpConnection {
  readonly client: McpClient;
  onToolsChanged(listener: () => void): void;
  close(): Promise<void>;
}

/** Options of one request. */
export interface McpRequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
}

type Sdk = typeof import("@modelcontextprotocol/sdk/client/index.js") &
  typeof import("@modelcontextprotocol/sdk/client/stdio.js") &
  typeof import("@modelcontextprotocol/sdk/client/streamableHttp.js") &
  typeof import("@modelcontextprotocol/sdk/types.js");
type SdkClient = InstanceType<Sdk["Client"]>;
type SendRequest = (request: object, schema: unknown, options: object) => Promise<unknown>;

const CONNECT_TIMEOUT_MS = 30_000;
/** Maximum size of one message of a program. The SDK's own default, a sixth of it, would cut the connection. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
const STDERR_CHARACTERS_SHOWN = 500;

/** Connects to a server. @throws {SessionError} `INVALID_TOOL` if it cannot be started or reached. */
export async function connectMcp(server: Exclude<McpServer, { client: McpClient }>): Promise<McpConnection> {
  const sdk = await loadSdk();
  // Output schemas of servers are not validated: compiling a malicious schema could block the process.
  const jsonSchemaValidator = { getValidator: () => (data: unknown) => ({ valid: true, data }) as never };
  const client: SdkClient = new sdk.Client({ name: "skein", version: VERSION }, { jsonSchemaValidator });
  const { transport, said, end } = "command" in server ? programTransport(sdk, server) : webTransport(sdk, server);
  try {
    await client.connect(transport as Parameters<SdkClient["connect"]>[0], { timeout: CONNECT_TIMEOUT_MS });
  } catch (cause) {
    await client.close().catch(() => {});
    const reason = `${withoutStop(`${messageOf(cause)}${said()}`)}.`;
    throw new SessionError("INVALID_TOOL", `The MCP server ${serverName(server)} does not answer: ${reason}`, {
      cause,
    });
  }
  return {
    client,
    onToolsChanged: (listener) => client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, listener),
    close: async () => {
      await end();
      await client.close();
    },
  };
}

/** Sends one request and returns the server's answer unchecked; the caller must check it. */
export async function askMcp(
  client: McpClient,
  request: { readonly method: string; readonly params?: object },
  { signal, timeoutMs }: McpRequestOptions,
): Promise<Record<string, unknown>> {
  const { ResultSchema } = await loadSdk();
  const send = client.request.bind(client) as unknown as SendRequest;
  const options = { timeout: timeoutMs, ...(signal === undefined ? {} : { signal }) };
  return (await send(request, ResultSchema, options)) as Record<string, unknown>;
}

/** Describes a failed request for a model. */
export function mcpFailure(error: unknown): { readonly kind: "timeout" | "tool_execution_exception"; reason: string } {
  const code = (error as { code?: unknown } | null)?.code;
  // Error codes of the protocol: -32001 is a timeout, -32000 a closed connection.
  if (code === -32001) return { kind: "timeout", reason: "it took too long" };
  if (code === -32000) return { kind: "tool_execution_exception", reason: "the server closed the connection" };
  return { kind: "tool_execution_exception", reason: messageOf(error) };
}

function programTransport(sdk: Sdk, server: Extract<McpServer, { command: string }>) {
  const transport = new sdk.StdioClientTransport({
    command: server.command,
    args: [...(server.args ?? [])],
    env: { ...server.env },
    ...(server.cwd === undefined ? {} : { cwd: server.cwd }),
    stderr: "pipe",
    maxBufferSize: MESSAGE_BYTES_MAX,
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString("utf8")}`.slice(-STDERR_CHARACTERS_SHOWN);
  });
  const said = () => (stderr.trim() === "" ? "" : `; it wrote: ${stderr.trim()}`);
  return { transport, said, end: async () => {} };
}

function webTransport(sdk: Sdk, server: Extract<McpServer, { url: string | URL }>) {
  const url = URL.canParse(String(server.url)) ? new URL(String(server.url)) : null;
  if (url === null) throw new SessionError("INVALID_OPTION", `${show(String(server.url))} is not the URL of a server.`);
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...server.headers } },
    fetch: streamWatch.fetch,
  });
  // Ends the session on a stateful server; failures are ignored, because the server may already be down.
  return { transport, said: () => "", end: () => transport.terminateSession().catch(() => {}) };
}

/** The server's name for messages, without arguments or query, which may hold secrets. */
export function serverName(server: McpServer): string {
  if ("client" in server) return "of a client";
  if ("command" in server) return show(server.command);
  const url = new URL(String(server.url));
  return show(`${url.origin}${url.pathname}`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function loadSdk(): Promise<Sdk> {
  try {
    // Awaited inside of `try`, so that bundlers treat the package as optional.
    const client = await import("@modelcontextprotocol/sdk/client/index.js");
    const stdio = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const http = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const types = await import("@modelcontextprotocol/sdk/types.js");
    return { ...client, ...stdio, ...http, ...types };
  } catch (cause) {
    throw missingSdk("Tools of MCP servers need", cause);
  }
}

/** The parts of the SDK that serve tools. */
export type McpServerSdk = typeof import("@modelcontextprotocol/sdk/server/index.js") &
  typeof import("@modelcontextprotocol/sdk/server/stdio.js") &
  typeof import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js") &
  typeof import("@modelcontextprotocol/sdk/types.js");

/** Loads the parts of the SDK that serve tools. @throws {SessionError} `DRIVER_MISSING`. */
export async function loadMcpServerSdk(): Promise<McpServerSdk> {
  try {
    const server = await import("@modelcontextprotocol/sdk/server/index.js");
    const stdio = await import("@modelcontextprotocol/sdk/server/stdio.js");
    const http = await import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js");
    const types = await import("@modelcontextprotocol/sdk/types.js");
    return { ...server, ...stdio, ...http, ...types };
  } catch (cause) {
    throw missingSdk("An MCP server needs", cause);
  }
}

function missingSdk(what: string, cause: unknown): SessionError {
  const text = `${what} a driver: install the package @modelcontextprotocol/sdk, version 1.32 or a later one of 1.`;
  return new SessionError("DRIVER_MISSING", text, { cause });
}
