import type { Tool } from "../agent/tools/tool.ts";
import type { McpServer } from "./mcp/mcp-sdk.ts";
import type { McpToolsOptions } from "./mcp/mcp-tools.ts";

/**
 * The default export of `skein.config.mjs`: tools for the agents of `skein chat` and `skein serve`, in addition to those of
 * the command line.
 */
export interface SkeinConfig {
  /** Tools of your own. */
  readonly tools?: readonly Tool[];
  /** MCP servers: a command, a URL, or an object with further options (`env`, `headers`, `prefix`, `trust`). */
  readonly mcp?: readonly (string | (McpServer & McpToolsOptions))[];
  /** Prices of models, in the JSON of LiteLLM or of models.dev; they precede those of the table. */
  readonly prices?: object;
}
