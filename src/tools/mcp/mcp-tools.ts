import { checkArgument, checkOptionsOf, type Habits, isObject, type KeysOf } from "../../session/check-arguments.ts";
import { NO_PARAMETERS, type Tool, type ToolContent, type ToolContext } from "../../agent/tools/tool.ts";
import { isToolEffects, type ToolEffects } from "../../agent/tools/tool-effects.ts";
import { copyJson, type JsonObject, type JsonValue } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { askMcp, type McpClient, mcpFailure } from "./mcp-sdk.ts";
import { streamWatch } from "./stream-watch.ts";
import { toolName } from "./tool-name.ts";
import { toolResult } from "./tool-result.ts";

/** Options of `mcpTools`. */
export interface McpToolsOptions {
  /** A prefix for every name, so that tools of two servers do not collide. */
  readonly prefix?: string;
  /** The timeout of one call (default: a minute). */
  readonly timeoutMs?: number;
  /**
   * The tools that you trust, by the server's names, with their effects: `{ search: "reads" }`. They need approval like your
   * own tools. All other tools need approval for each call, unless the run has `ask: "never"`. The server's own annotations are
   * ignored.
   */
  readonly trust?: Readonly<Record<string, ToolEffects>>;
}

/** The names of these options. */
export const MCP_TOOLS_KEYS: KeysOf<McpToolsOptions> = { prefix: true, timeoutMs: true, trust: true };

/** Former options, with their replacements. */
export const MCP_HABITS: Habits = {
  approval: 'name the tools that you vouch for in trust, such as { search: "reads" }',
  needsApproval: 'name the tools that you vouch for in trust, such as { search: "reads" }',
};

/** @throws {SessionError} `INVALID_OPTION`, with the name of the call, if the value is not a client of an MCP server. */
export function checkClient(client: unknown, call: string): void {
  checkArgument(
    isObject(client) && typeof client.request === "function",
    client,
    call,
    "a connected client of an MCP server",
  );
}

/** A tool of a server that cannot be offered to a model, with the reason. */
export interface RefusedTool {
  readonly name: string;
  readonly problem: string;
}

/** The current tools of a server. */
export interface McpToolList {
  readonly tools: readonly Tool[];
  readonly refused: readonly RefusedTool[];
}

const TIMEOUT_MS = 60_000;
const DESCRIPTION_CHARACTERS_MAX = 8_000;
const SCHEMA_CHARACTERS_MAX = 64 * 1024;
const PAGES_MAX = 100;
const TOOLS_MAX = 1_000;

/**
 * The tools of the server that your client is connected to. You close the client.
 *
 * @throws {SessionError} `INVALID_TOOL` if the server does not list its tools, or if one of them cannot be used;
 * `INVALID_OPTION` for an invalid `trust`.
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<readonly Tool[]> {
  checkOptionsOf(options, MCP_TOOLS_KEYS, "mcpTools", MCP_HABITS);
  checkClient(client, "mcpTools");
  const { tools, refused } = await listMcpTools(client, options);
  if (refused[0] === undefined) return tools;
  throw new SessionError("INVALID_TOOL", `The tool ${show(refused[0].name)} cannot be used: ${refused[0].problem}.`);
}

/** Requests all pages of a server's list of tools. */
export async function listMcpTools(client: McpClient, options: McpToolsOptions): Promise<McpToolList> {
  checkTrust(options.trust);
  const tools = new Map<string, Tool>();
  const refused: RefusedTool[] = [];
  for (const listed of await listPages(client, options)) {
    const name = String((listed as { name?: unknown } | null)?.name);
    try {
      const tool = makeTool(client, listed, options);
      if (tools.has(tool.schema.name)) throw new Error(`another tool is called ${show(tool.schema.name)} already`);
      tools.set(tool.schema.name, tool);
    } catch (error) {
      refused.push({ name, problem: (error as Error).message });
    }
  }
  return { tools: [...tools.values()], refused };
}

async function listPages(client: McpClient, { timeoutMs = TIMEOUT_MS }: McpToolsOptions): Promise<readonly unknown[]> {
  const listed: unknown[] = [];
  let cursor: unknown;
  for (let page = 0; page < PAGES_MAX && listed.length <= TOOLS_MAX; page++) {
    const params = typeof cursor === "string" ? { cursor } : {};
    const answer = await askMcp(client, { method: "tools/list", params }, { timeoutMs }).catch((cause: unknown) => {
      if (cause instanceof SessionError) throw cause;
      const { reason } = mcpFailure(cause);
      throw new SessionError("INVALID_TOOL", `The MCP server does not list its tools: ${reason}.`, { cause });
    });
    if (!Array.isArray(answer.tools)) {
      throw new SessionError("INVALID_TOOL", "The MCP server answers with something else than a list of tools.");
    }
    listed.push(...(answer.tools as readonly unknown[]));
    cursor = answer.nextCursor;
    if (typeof cursor !== "string" || cursor === "") return listed;
  }
  throw new SessionError(
    "INVALID_TOOL",
    `The MCP server lists more than ${TOOLS_MAX} tools or ${PAGES_MAX} pages; connect to one that offers fewer.`,
  );
}

function makeTool(client: McpClient, listed: unknown, options: McpToolsOptions): Tool {
  const { name, description, inputSchema } = (listed ?? {}) as Record<string, unknown>;
  if (typeof name !== "string" || name === "") throw new Error("it has no name");
  const { timeoutMs = TIMEOUT_MS, trust = {}, prefix = "" } = options;
  const effects = Object.hasOwn(trust, name) ? trust[name] : undefined;
  return Object.freeze({
    schema: Object.freeze({
      name: toolName(prefix, name),
      description: typeof description === "string" ? shorten(description) : "",
      parameters: parametersOf(inputSchema),
    }),
    check: (args: unknown) =>
      typeof args === "object" && args !== null && !Array.isArray(args)
        ? { ok: true as const, value: args }
        : { ok: false as const, problem: "The arguments must be a JSON object." },
    execute: (args: unknown, context: ToolContext) => callTool(client, name, args, context.signal, options),
    // Only your `trust` makes a call repeatable, not the server's own annotation.
    idempotent: effects === "reads",
    server: serverName(client, options),
    ...(effects === undefined ? { untrusted: true } : { effects }),
    timeoutMs,
  });
}

/** The name by which tools are sorted: the caller's prefix, else the server's own name. */
function serverName(client: McpClient, { prefix = "" }: McpToolsOptions): string {
  const { getServerVersion } = client as { getServerVersion?: () => { readonly name?: unknown } | undefined };
  const name = prefix === "" ? getServerVersion?.call(client)?.name : prefix;
  return typeof name === "string" ? name : "";
}

function checkTrust(trust: unknown): void {
  if (trust === undefined) return;
  if (typeof trust !== "object" || trust === null || Array.isArray(trust)) {
    throw new SessionError(
      "INVALID_OPTION",
      `trust is ${show(trust)}; give effects by name, as in { search: "reads" }.`,
    );
  }
  for (const [name, effects] of Object.entries(trust)) {
    if (isToolEffects(effects)) continue;
    const words = '"reads", "writes" or "commands"';
    throw new SessionError("INVALID_OPTION", `trust gives ${show(name)} the effects ${show(effects)}; give ${words}.`);
  }
}

function parametersOf(inputSchema: unknown): JsonObject {
  if (inputSchema === undefined) return NO_PARAMETERS;
  const schema: JsonValue = copyJson(inputSchema, "its schema");
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    throw new Error("its schema is not an object");
  const parameters = schema as JsonObject;
  if ((parameters.type ?? "object") !== "object") throw new Error("its schema is not the schema of an object");
  if (JSON.stringify(parameters).length > SCHEMA_CHARACTERS_MAX) throw new Error("its schema is too large");
  return Object.freeze({ properties: {}, ...parameters, type: "object" });
}

function shorten(description: string): string {
  if (description.length <= DESCRIPTION_CHARACTERS_MAX) return description;
  // Do not cut inside of a surrogate pair: half of one is invalid in a request.
  return `${description.slice(0, DESCRIPTION_CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, "")}…`;
}

async function callTool(
  client: McpClient,
  name: string,
  args: unknown,
  signal: AbortSignal,
  { timeoutMs = TIMEOUT_MS }: McpToolsOptions,
): Promise<ToolContent> {
  signal.throwIfAborted();
  const request = { method: "tools/call", params: { name, arguments: args } };
  try {
    const answer = await streamWatch.run((lost) =>
      askMcp(client, request, { signal: AbortSignal.any([signal, lost]), timeoutMs }),
    );
    return toolResult(answer);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    const { kind, reason } = mcpFailure(error);
    const message = `The MCP server did not answer the call of ${show(name)}: ${reason}.`;
    return { content: JSON.stringify({ ok: false, error_kind: kind, message }), isError: true };
  }
}
