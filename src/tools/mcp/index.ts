export type { McpClient, McpServer } from "./mcp-sdk.ts";
export { type McpToolsOptions, mcpTools, type RefusedTool } from "./mcp-tools.ts";
export { type McpTools, openMcpTools, type OpenMcpToolsOptions } from "./open-mcp-tools.ts";
