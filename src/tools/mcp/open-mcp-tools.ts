import { checkArgument, checkOptionsOf, isObject, type KeysOf } from "../../session/check-arguments.ts";
import type { Tool } from "../../agent/tools/tool.ts";
import { connectMcp, type McpClient, type McpConnection, type McpServer } from "./mcp-sdk.ts";
import {
  checkClient,
  listMcpTools,
  MCP_HABITS,
  MCP_TOOLS_KEYS,
  type McpToolList,
  type McpToolsOptions,
  type RefusedTool,
} from "./mcp-tools.ts";

/** Options of `openMcpTools`. */
export interface OpenMcpToolsOptions extends McpToolsOptions {
  /** Called with the new tools after the server has changed them. Runs that have started keep the old tools. */
  onChanged?(tools: readonly Tool[]): void;
}

/** The tools of one MCP server, and the connection to it. */
export interface McpTools extends AsyncDisposable {
  /** The tools that the server last listed. */
  readonly tools: readonly Tool[];
  /** The tools that cannot be offered to a model, with the reasons. */
  readonly refused: readonly RefusedTool[];
  /** Requests the list of tools again. This also happens automatically when the server announces a change. */
  refresh(): Promise<readonly Tool[]>;
  /** Closes the connection and ends the program that was started for it. A client that you passed in stays open. */
  close(): Promise<void>;
}

/**
 * Connects to an MCP server and provides its tools for runs.
 *
 * @throws {SessionError} `INVALID_TOOL` if it cannot be started or reached, or does not list its tools; `DRIVER_MISSING` if
 * the package `@modelcontextprotocol/sdk` is not installed.
 */
export async function openMcpTools(server: McpServer, options: OpenMcpToolsOptions = {}): Promise<McpTools> {
  checkArgument(isObject(server), server, "openMcpTools", "a server: { command, args }, { url } or { client }");
  checkOptionsOf(
    options,
    { ...MCP_TOOLS_KEYS, onChanged: true } satisfies KeysOf<OpenMcpToolsOptions>,
    "openMcpTools",
    MCP_HABITS,
  );
  if ("client" in server) checkClient(server.client, "openMcpTools");
  const connection = "client" in server ? lentConnection(server.client) : await connectMcp(server);
  const ask = (): Promise<McpToolList> => listMcpTools(connection.client, options);
  let known: McpToolList;
  try {
    known = await ask();
  } catch (error) {
    await connection.close();
    throw error;
  }
  const refresh = async (): Promise<readonly Tool[]> => {
    known = await ask();
    return known.tools;
  };
  connection.onToolsChanged(() => {
    refresh()
      .then(options.onChanged)
      // Ignored: if the connection is broken, the next call fails and reports it.
      .catch(() => {});
  });
  const close = (): Promise<void> => connection.close();
  return {
    get tools() {
      return known.tools;
    },
    get refused() {
      return known.refused;
    },
    refresh,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The connection of a caller's client: its handlers are not replaced, and it is not closed. */
function lentConnection(client: McpClient): McpConnection {
  return { client, onToolsChanged: () => {}, close: async () => {} };
}
