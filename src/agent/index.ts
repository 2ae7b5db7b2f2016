export { drainRuns } from "./active-runs.ts";
export { type Agent, type AgentInit, createAgent } from "./agent.ts";
export { registerBuiltInTools } from "./tools/offer-tools.ts";
export { type CompactOptions, compact } from "./context/compact.ts";
export {
  type ContextInfo,
  type ContextTransform,
  type PruneContextLimits,
  pruneContext,
} from "./context/context-transform.ts";
export { defineTool, type ToolDefinition } from "./tools/define-tool.ts";
export { type LoopExecutor, streamingExecutor } from "./model/loop-executor.ts";
export type {
  Budget,
  LoopCompaction,
  LoopOptions,
  ParkOptions,
  RequestParameters,
  RunOptions,
  Spending,
} from "./loop-options.ts";
export type { Model, ModelDelta, ModelReply, ModelRequest, ToolSchema } from "./model/model.ts";
export { ModelError, type ModelFailure } from "./model/model-error.ts";
export { type ResumedSession, type ResumeOptions, resumeSession } from "./persist/resume-session.ts";
export type { RetryOptions } from "./model/retry.ts";
export type { RunError } from "./run-error.ts";
export type { Approval, RunEvent } from "./run-event.ts";
export { type CompressOptions, runSessionCompress } from "./run-session-compress.ts";
export { runSessionLoop, type SessionInput } from "./run-session-loop.ts";
export type { Persist } from "./persist/run-sink.ts";
export type { Answer, RunStatus, SessionRun } from "./session-run.ts";
export type { StandardSchema } from "./schema/standard-schema.ts";
export type { ValueOf, ValueSchema } from "./schema/value-schema.ts";
export { summarizeBranch } from "./context/summarize-branch.ts";
export type { TelemetryOptions } from "./telemetry.ts";
export type { CheckedArguments, Tool, ToolContent, ToolContext } from "./tools/tool.ts";
export type { ToolEffects } from "./tools/tool-effects.ts";
export { TOOL_RESULT_CHARACTERS_MAX, type ToolFailure } from "./tools/tool-result.ts";
export { UNASKED, type Unasked } from "./tools/unasked.ts";
