import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import { defineTool } from "./define-tool.ts";
import type { LoopExecutor } from "../model/loop-executor.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
import type { Tool } from "./tool.ts";

const builtIn = new Map<string, Tool>();

/** Adds tools to every loop that does not opt out. */
export function registerBuiltInTools(tools: readonly Tool[]): void {
  const wanted = "a list of tools, such as defineTool makes";
  checkArgument(Array.isArray(tools), tools, "registerBuiltInTools", wanted);
  for (const tool of tools) checkArgument(isObject(tool?.schema), tool, "registerBuiltInTools", wanted);
  for (const tool of tools) builtIn.set(tool.schema.name, tool);
}

/** The tools of a loop: those offered to the model, and the functions to run. */
export interface OfferedTools {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly schemas: readonly ToolSchema[];
}

/** The tools for these options. @throws {SessionError} `INVALID_TOOL` or `INVALID_OPTION` for invalid ones. */
export function offerTools(options: LoopOptions): OfferedTools {
  const tools = toolsOf(options);
  const own = options.executor?.toolSchemas?.() ?? [];
  if (own.length === 0) return { tools, schemas: [...tools.values()].map((tool) => tool.schema) };
  const all = new Map(tools);
  for (const schema of own) if (!all.has(schema.name)) all.set(schema.name, dispatchedTool(schema, options.executor));
  return { tools: all, schemas: own };
}

/** The tools for these options, without an executor's. @throws {SessionError} as `offerTools` does. */
export function toolsOf({
  tools = [],
  builtInTools: wanted = true,
}: Pick<LoopOptions, "tools" | "builtInTools">): ReadonlyMap<string, Tool> {
  checkArgument(
    Array.isArray(tools),
    tools,
    "tools",
    "a list of tools, such as [findOrder]; a tool has its name itself",
  );
  if (typeof wanted !== "boolean") {
    checkArgument(Array.isArray(wanted), wanted, "builtInTools", "true, false, or a list of names");
    const unknown = wanted.find((name) => !builtIn.has(name));
    if (unknown !== undefined) {
      const names = [...builtIn.keys()].join(", ") || "none";
      throw new SessionError("INVALID_OPTION", `There is no built-in tool ${show(unknown)}; there are: ${names}.`);
    }
  }
  const all = new Map([...builtIn].filter(([name]) => (typeof wanted === "boolean" ? wanted : wanted.includes(name))));
  for (const tool of inFixedOrder(tools)) {
    const name = tool?.schema?.name;
    if (typeof name !== "string" || typeof tool.execute !== "function" || typeof tool.check !== "function") {
      const foreign = isObject(tool) && ("inputSchema" in tool || "parameters" in tool);
      const advice = foreign ? "; what other SDKs call inputSchema is parameters" : "";
      throw new SessionError(
        "INVALID_TOOL",
        `One of the tools was not made with defineTool; call defineTool({ name, description, parameters, execute })${advice}.`,
      );
    }
    if (builtIn.has(name) && all.get(name) === builtIn.get(name)) {
      throw new SessionError(
        "INVALID_TOOL",
        `The tool ${name} has the name of a built-in tool; rename it, or leave that one out with builtInTools.`,
      );
    }
    if (all.has(name)) throw new SessionError("INVALID_TOOL", `Two tools have the name ${name}; rename one.`);
    all.set(name, tool);
  }
  return all;
}

/** Tools in the order of requests: those of a program as given, then those of MCP servers by server and name. */
function inFixedOrder(tools: readonly Tool[]): readonly Tool[] {
  const isOfServer = (tool: Tool): boolean => typeof tool?.server === "string";
  const keyOf = ({ server = "", schema }: Tool): string => `${server}\0${schema?.name}`;
  const ofServers = tools.filter(isOfServer).sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  return [...tools.filter((tool) => !isOfServer(tool)), ...ofServers];
}

/** A tool that only an executor can run. */
function dispatchedTool(schema: ToolSchema, executor: LoopExecutor | undefined): Tool {
  if (executor?.dispatchTool === undefined) {
    throw new SessionError(
      "INVALID_TOOL",
      `The executor offers a tool ${show(schema.name)} that nothing can run; add it to the tools, or give the executor a dispatchTool.`,
    );
  }
  return defineTool({
    ...schema,
    execute: () => {
      throw new Error(`The tool ${schema.name} is run by the executor.`);
    },
  });
}
