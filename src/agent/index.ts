export { type CompactOptions, compact } from "./compact.ts";
export type { Model, ModelDelta, ModelReply, ModelRequest, ToolSchema } from "./model.ts";
export { summarizeBranch } from "./summarize-branch.ts";
export { ModelError, type ModelFailure } from "./model-error.ts";
export type { CheckedArguments, Tool, ToolContent, ToolContext } from "./tool.ts";
