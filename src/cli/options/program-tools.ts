import { defined } from "../../internal/defined.ts";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { SessionError, type SkeinConfig, type Tool } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { hideFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import { type McpServer, type McpTools, type McpToolsOptions, openMcpTools } from "../../tools/mcp/index.ts";
import { serverName } from "../../tools/mcp/mcp-sdk.ts";
import { pricesIn } from "../../models/price-list.ts";
import { registerPrices } from "../../models/prices.ts";
import { workspaceTools } from "../../tools/workspace-tools.ts";
import { type CommandContext, type CommandOption, textOption, textsOption } from "../command.ts";
import { loadModule } from "./load-module.ts";

/** The options for an agent's tools beside the workspace tools. */
export const TOOL_OPTIONS: Readonly<Record<"tools" | "mcp" | "no-config", CommandOption>> = {
  tools: { value: "FILE", repeated: true, what: "a module that exports tools for the agent" },
  mcp: {
    value: "SERVER",
    repeated: true,
    what: "an MCP server with tools for the agent: its URL, or in quotes the command that starts it",
  },
  "no-config": {
    what: "do not load skein.config.mjs (or .ts) from the current directory, which defines further tools",
  },
};

/** The first one that exists is used. */
const CONFIGS = ["skein.config.mjs", "skein.config.ts"];

/** An agent's tools beside the workspace tools; closing it disconnects their MCP servers. */
export interface ProgramTools extends AsyncDisposable {
  readonly tools: readonly Tool[];
}

/** The tools of MCP servers, and the servers. */
export interface ServerTools extends ProgramTools {
  readonly servers: readonly McpTools[];
}

/**
 * The tools that the command line and `skein.config` name. Their MCP servers end with the program.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid module or config, or for two tools with the same name; the
 * errors of `openMcpTools` for a server.
 */
export async function openProgramTools(context: CommandContext): Promise<ProgramTools> {
  const config = await loadConfig(context);
  const named = new Map(workspaceTools.map((tool) => [tool.schema.name, "the workspace"]));
  const own = [...registerTools(named, config.tools ?? [], "skein.config")];
  for (const path of textsOption(context.values, "tools"))
    own.push(...registerTools(named, await toolsOf(path), show(path)));
  const servers = [...(config.mcp ?? []), ...textsOption(context.values, "mcp")].map(serverOf);
  const opened = await openMcpServers(servers);
  const close = opened[Symbol.asyncDispose];
  try {
    const foreign = opened.servers.flatMap(({ tools, refused }, at) => {
      const from = `the MCP server ${serverName(servers[at] as McpServer)}`;
      for (const { name, problem } of refused)
        context.fail(`The tool ${show(name)} of ${from} is not used: ${problem}.`);
      return registerTools(named, tools, from);
    });
    return { tools: [...own, ...foreign], [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Connects to MCP servers. If one fails, all are disconnected. @throws {SessionError} as `openMcpTools` does. */
export async function openMcpServers(named: readonly (McpServer & McpToolsOptions)[]): Promise<ServerTools> {
  const opened = await Promise.allSettled(
    named.map(({ prefix, timeoutMs, trust, ...server }) =>
      openMcpTools(server as McpServer, defined({ prefix, timeoutMs, trust })),
    ),
  );
  const servers = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = opened.find((each) => each.status === "rejected");
  const close = async (): Promise<void> => void (await Promise.all(servers.map((server) => server.close())));
  if (failed === undefined)
    return { servers, tools: servers.flatMap(({ tools }) => tools), [Symbol.asyncDispose]: close };
  await close();
  throw failed.reason;
}

async function loadConfig({ values, fail }: CommandContext): Promise<SkeinConfig> {
  // Hidden even if missing: a model must not create one, here or in its workspace, that the next start would load.
  for (const directory of [".", textOption(values, "workspace") ?? "."]) {
    for (const name of CONFIGS) hideFromSandboxes(resolve(directory, name));
  }
  const path = CONFIGS.find((name) => existsSync(name));
  if (path === undefined || values["no-config"] === true) return {};
  fail(`Loading ${resolve(path)}, which runs with your rights; --no-config skips it.`);
  const { default: config } = await loadModule(path, "a config");
  const { tools = [], mcp = [], prices, ...others } = (config ?? {}) as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (typeof config === "object" && Array.isArray(tools) && Array.isArray(mcp) && unknown === undefined) {
    if (prices !== undefined) registerPrices(pricesIn(prices, `The field prices of ${path}`));
    return { tools, mcp };
  }
  const problem =
    unknown === undefined ? "has no config as its default export" : `has the unknown field ${show(unknown)}`;
  throw new SessionError("INVALID_OPTION", `${path} ${problem}; export default { tools: [], mcp: [] }.`);
}

/** The exported tools of a module, single or in lists, without duplicates. */
async function toolsOf(path: string): Promise<readonly unknown[]> {
  const exported = Object.values(await loadModule(path, "tools"));
  const found = exported.flatMap((value) =>
    Array.isArray(value) && value.some(isTool) ? value : [value].filter(isTool),
  );
  if (found.length > 0) return [...new Set(found)];
  throw new SessionError("INVALID_OPTION", `${show(path)} must export a tool: export const find = defineTool({ … }).`);
}

/** Checks and returns the tools, and reserves their names. */
function registerTools(named: Map<string, string>, tools: readonly unknown[], from: string): readonly Tool[] {
  return tools.map((tool) => {
    if (!isTool(tool)) {
      throw new SessionError("INVALID_OPTION", `A tool of ${from} is invalid; make tools with defineTool.`);
    }
    const { name } = tool.schema;
    const taken = named.get(name);
    if (taken !== undefined) {
      const advice = "rename one, or give a server a prefix in skein.config";
      throw new SessionError("INVALID_OPTION", `Two tools are named ${name}, in ${taken} and in ${from}; ${advice}.`);
    }
    named.set(name, from);
    return tool;
  });
}

function isTool(value: unknown): value is Tool {
  const { schema, check, execute } = (value ?? {}) as Partial<Tool>;
  return typeof schema?.name === "string" && typeof check === "function" && typeof execute === "function";
}

function serverOf(given: string | (McpServer & McpToolsOptions)): McpServer & McpToolsOptions {
  if (typeof given !== "string") {
    if (["command", "url", "client"].some((way) => Object.hasOwn(given ?? {}, way))) return given;
    const advice = "give a command line, a URL, { command, args } or { url }";
    throw new SessionError("INVALID_OPTION", `${show(given)} in skein.config is not an MCP server; ${advice}.`);
  }
  if (/^https?:\/\//i.test(given)) return { url: given };
  // Quotes group words as in a shell; no other shell syntax is supported.
  const words = given.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const [command = "", ...args] = words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
  return { command, args };
}
