import type { Tool } from "../agent/tools/tool.ts";
import type { McpServer } from "./mcp/mcp-sdk.ts";
import type { McpToolsOptions } from "./mcp/mcp-tools.ts";

/**
 * What `skein.config.mjs` exports as its default: what the agents of `skein chat` and `skein serve` can call, beside what the
 * command line says.
 */
export interface SkeinConfig {
  /** Tools of your own. */
  readonly tools?: readonly Tool[];
  /** MCP servers: the command or the URL of one, or what a command line has no room for (`env`, `headers`, `prefix`, `trust`). */
  readonly mcp?: readonly (string | (McpServer & McpToolsOptions))[];
}
