import type { CompactionSettings } from "../session/compaction.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHooks } from "../session/hooks.ts";
import type { Usage } from "../session/usage.ts";
import { builtInTools } from "./built-in-tools.ts";
import type { LoopExecutor } from "./loop-executor.ts";
import type { Model, ModelRequest, ToolSchema } from "./model.ts";
import type { RetryOptions } from "./retry.ts";
import type { RunEvent } from "./run-event.ts";
import type { Persist } from "./run-sink.ts";
import type { TelemetryOptions } from "./telemetry.ts";
import type { Tool } from "./tool.ts";

/** What goes with every request of a run. A tool choice other than `"auto"` and `"none"` holds for the first round only. */
export type RequestParameters = Omit<ModelRequest, "messages" | "tools">;

/** How much a run may spend. */
export interface Budget {
  readonly totalTokens?: number;
  readonly cost?: number;
  /** Count what led here too: every operation in the session's lineage that is still known (default: this run). */
  readonly over?: "run" | "lineage";
}

/** What was spent when a budget was crossed. */
export interface Spending {
  readonly usage: Usage;
  readonly cost: number;
}

/** When and how a run makes room in a context that gets too long. */
export interface LoopCompaction {
  readonly settings?: Partial<CompactionSettings>;
  /** The model that writes the summaries (default: the run's own). */
  readonly model?: Model;
  readonly instructions?: string;
  readonly hooks?: SessionHooks | readonly SessionHooks[];
}

/** What every operation that asks a model takes. */
export interface RunOptions extends RequestParameters {
  /** The model to ask; not needed with an executor. */
  readonly model?: Model;
  /** Replaces completion and the running of tools. */
  readonly executor?: LoopExecutor;
  /** Told of everything as it happens; the model must be able to stream. One that throws is reported, and the run goes on. */
  readonly onEvent?: (event: RunEvent) => void;
  /** Where every row is kept before the run goes on (default: nowhere). */
  readonly persist?: Persist;
  /** What to record as the sandbox's handle instead of its own. */
  readonly sandboxHandleId?: string;
  readonly signal?: AbortSignal;
  /** Goes on every answer as `agent`, and into spans. */
  readonly agentName?: string;
  readonly retry?: RetryOptions;
  readonly telemetry?: TelemetryOptions;
  /** Make the sessions known to `sessionRegistry` (default true). */
  readonly register?: boolean;
}

/** How a session is run through an agent. */
export interface LoopOptions extends RunOptions {
  readonly tools?: readonly Tool[];
  /** The workspace tools to offer: all (default), none, or these. */
  readonly builtInTools?: boolean | readonly string[];
  /** How many rounds may call tools (default 64). */
  readonly maxToolRounds?: number;
  readonly budget?: Budget;
  /** Called once, when the budget is first crossed; `"stop"` ends the run there. Without it, a crossed budget ends the run. */
  readonly onBudget?: (spent: Spending) => "stop" | "continue" | undefined;
  /** Room is made by itself when the model says how long its context may be; false turns that off. */
  readonly compaction?: LoopCompaction | false;
}

/** The most rounds with tool calls, where a caller gives no number. */
export const MAX_TOOL_ROUNDS_DEFAULT = 64;

/** The tools of a loop by name, after checking everything that can be wrong with its options. */
export function checkLoopOptions(options: LoopOptions): ReadonlyMap<string, Tool> {
  checkRunOptions(options);
  const { maxToolRounds = MAX_TOOL_ROUNDS_DEFAULT, budget = {}, compaction } = options;
  if (!Number.isInteger(maxToolRounds) || maxToolRounds < 1) {
    throw invalid(`maxToolRounds is ${show(maxToolRounds)}; give a whole number of 1 or more.`);
  }
  for (const field of ["totalTokens", "cost"] as const) {
    const limit = budget[field];
    if (limit !== undefined && !(Number.isFinite(limit) && limit >= 0)) {
      throw invalid(`The budget's ${field} is ${show(limit)}; give a number of 0 or more.`);
    }
  }
  if (compaction !== undefined && compaction !== false && typeof compaction !== "object") {
    throw invalid("compaction is neither false nor an object of settings.");
  }
  return toolsOf(options);
}

/** @throws {SessionError} `INVALID_OPTION` for a set-up that cannot work. */
export function checkRunOptions(options: RunOptions): void {
  const { model, executor, onEvent } = options;
  if (executor !== undefined && onEvent !== undefined) {
    throw invalid("executor and onEvent exclude each other; combine them with streamingExecutor(model, onEvent).");
  }
  if (executor === undefined && typeof model?.complete !== "function") {
    throw invalid("There is no model to ask; give one as model, or an executor.");
  }
  if (onEvent !== undefined && model?.stream === undefined) {
    throw invalid(`${model?.provider}/${model?.id} cannot stream, which onEvent needs; leave onEvent out.`);
  }
  const attempts = options.retry?.attempts;
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts >= 1 && attempts <= 20)) {
    throw invalid(`retry.attempts is ${show(attempts)}; give a whole number from 1 to 20.`);
  }
}

/** The schemas of a loop's tools, as the model is told of them. */
export function schemasOf(tools: ReadonlyMap<string, Tool>, executor: LoopExecutor | undefined): readonly ToolSchema[] {
  const own = executor?.toolSchemas?.() ?? [];
  return own.length > 0 ? own : [...tools.values()].map((tool) => tool.schema);
}

function toolsOf({ tools = [], builtInTools: wanted = true }: LoopOptions): ReadonlyMap<string, Tool> {
  const known = builtInTools();
  if (typeof wanted !== "boolean") {
    const unknown = wanted.find((name) => !known.has(name));
    if (unknown !== undefined)
      throw invalid(`There is no built-in tool ${show(unknown)}; there are: ${[...known.keys()].join(", ")}.`);
  }
  const all = new Map([...known].filter(([name]) => (typeof wanted === "boolean" ? wanted : wanted.includes(name))));
  for (const tool of tools) {
    const name = tool?.schema?.name;
    if (typeof name !== "string" || typeof tool.execute !== "function" || typeof tool.check !== "function") {
      throw new SessionError("INVALID_TOOL", "One of the tools is no tool; make tools with defineTool.");
    }
    if (known.has(name) && all.has(name)) {
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

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
