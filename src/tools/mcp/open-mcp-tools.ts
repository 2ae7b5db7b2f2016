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

/** How a server's tools are opened. */
export interface OpenMcpToolsOptions extends McpToolsOptions {
  /** Called with the new tools after the server has changed them; runs that have started keep the old ones. */
  onChanged?(tools: readonly Tool[]): void;
}

/** The tools of one MCP server, and the connection to it. */
export interface McpTools extends AsyncDisposable {
  /** What the server offers, as far as is known now. */
  readonly tools: readonly Tool[];
  /** What it offers and no model can be told of, with the reason of each. */
  readonly refused: readonly RefusedTool[];
  /** Asks the server anew. After a change that it announces itself, this happens without being called. */
  refresh(): Promise<readonly Tool[]>;
  /** Ends the connection, and the program that was started for it; a client that was handed in stays open. */
  close(): Promise<void>;
}

/**
 * Connects to an MCP server and offers its tools to a run.
 *
 * @throws {SessionError} `INVALID_TOOL` when it cannot be started, reached or asked; `DRIVER_MISSING` without the package
 * `@modelcontextprotocol/sdk`.
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
      // A server that breaks off now fails the next call too, and there somebody hears of it.
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

/** A client that the caller connected keeps its handlers and its life. */
function lentConnection(client: McpClient): McpConnection {
  return { client, onToolsChanged: () => {}, close: async () => {} };
}
