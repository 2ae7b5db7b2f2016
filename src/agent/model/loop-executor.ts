import { checkArgument } from "../../session/check-arguments.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
import type { Session } from "../../session/value/session.ts";
import { collectReply } from "./collect-reply.ts";
import { checkIsModel, type Model, type ModelDelta, type ModelReply, type ModelRequest } from "./model.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";

/** Replaces how a loop asks for completions and runs tools. */
export interface LoopExecutor {
  complete(request: ModelRequest, options: { readonly signal: AbortSignal }): Promise<ModelReply>;
  /**
   * Runs a tool with checked arguments; the default is `tool.execute(args, context)`. Its result or error is handled
   * like a tool's. `context.signal` aborts when the run is aborted or the tool times out; the result is ignored from
   * then on.
   */
  dispatchTool?(session: Session, tool: Tool, args: unknown, context: ToolContext): unknown;
  /** The tools to offer to the model; none or an empty list means the loop's own. */
  toolSchemas?(): readonly ToolSchema[];
}

/**
 * An executor that streams a model's answers to a listener; if `inner` is given, it runs the tools.
 *
 * @example
 * const model = createModel("openai/gpt-5-mini");
 * const executor = streamingExecutor(model, (delta) => console.log(delta.type));
 * await createAgent({ prompt: "You are brief.", model, executor }).run("Hello");
 */
export function streamingExecutor(
  model: Model,
  onEvent: (delta: ModelDelta) => void,
  inner?: Pick<LoopExecutor, "dispatchTool" | "toolSchemas">,
): LoopExecutor {
  checkIsModel(model, "streamingExecutor");
  checkArgument(
    typeof onEvent === "function",
    onEvent,
    "streamingExecutor",
    "a model, then a function that takes its deltas",
  );
  return {
    complete: (request, { signal }) => collectReply(model, request, signal, onEvent),
    ...(inner?.dispatchTool === undefined ? {} : { dispatchTool: inner.dispatchTool.bind(inner) }),
    ...(inner?.toolSchemas === undefined ? {} : { toolSchemas: inner.toolSchemas.bind(inner) }),
  };
}
