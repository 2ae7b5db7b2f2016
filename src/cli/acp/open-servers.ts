import { SessionError } from "../../index.ts";
import { type McpServer, type McpTools, openMcpTools } from "../../tools/mcp/index.ts";
import type { acp } from "./acp-sdk.ts";

/**
 * Connects to the MCP servers that an editor names. Their tools ask each time, as those of every server that nobody vouches
 * for. Where one cannot be had, none is left connected.
 *
 * @throws {SessionError} `INVALID_TOOL` or `DRIVER_MISSING` as `openMcpTools` does, `NOT_SUPPORTED` for a kind of server.
 */
export async function openServers(servers: readonly acp.McpServer[], cwd: string): Promise<readonly McpTools[]> {
  const opened = await Promise.allSettled(
    servers.map(async (server) => openMcpTools(addressOf(server, cwd), { prefix: `${server.name}_` })),
  );
  const tools = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = opened.find((each) => each.status === "rejected");
  if (failed === undefined) return tools;
  await Promise.all(tools.map((each) => each.close()));
  throw failed.reason;
}

function addressOf(server: acp.McpServer, cwd: string): McpServer {
  const valuesOf = (pairs: readonly { name: string; value: string }[]) =>
    Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
  if (!("type" in server)) return { command: server.command, args: server.args, env: valuesOf(server.env), cwd };
  if (server.type === "http") return { url: server.url, headers: valuesOf(server.headers) };
  const text = `The MCP server ${server.name} is of the type ${server.type}; give a program, or one of the type http.`;
  throw new SessionError("NOT_SUPPORTED", text);
}
