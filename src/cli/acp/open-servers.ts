import { SessionError } from "../../index.ts";
import type { McpServer, McpTools } from "../../tools/mcp/index.ts";
import { openMcpServers } from "../options/program-tools.ts";
import type { acp } from "./acp-sdk.ts";

/**
 * Connects to the MCP servers that an editor names. Their tools ask each time, as those of every server that nobody vouches
 * for.
 *
 * @throws {SessionError} as `openMcpServers` does, `NOT_SUPPORTED` for a kind of server.
 */
export async function openServers(servers: readonly acp.McpServer[], cwd: string): Promise<readonly McpTools[]> {
  return openMcpServers(servers.map((server) => ({ ...addressOf(server, cwd), prefix: `${server.name}_` })));
}

function addressOf(server: acp.McpServer, cwd: string): McpServer {
  const valuesOf = (pairs: readonly { name: string; value: string }[]) =>
    Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
  if (!("type" in server)) return { command: server.command, args: server.args, env: valuesOf(server.env), cwd };
  if (server.type === "http") return { url: server.url, headers: valuesOf(server.headers) };
  const text = `The MCP server ${server.name} is of the type ${server.type}; give a program, or one of the type http.`;
  throw new SessionError("NOT_SUPPORTED", text);
}
