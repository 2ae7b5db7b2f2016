import "./models/register-built-in.ts";
import "./sandboxes/register-built-in.ts";
import "./tools/register-built-in.ts";

export { drainRuns } from "./agent/active-runs.ts";
export { type Agent, type AgentInit, createAgent } from "./agent/agent.ts";
export type {
  ApprovalAnswer,
  Budget,
  LoopCompaction,
  LoopOptions,
  OnApproval,
  ParkOptions,
  RequestParameters,
  RunOptions,
  Spending,
} from "./agent/loop-options.ts";
export { type LoopExecutor, streamingExecutor } from "./agent/model/loop-executor.ts";
export { ModelError, type ModelFailure } from "./agent/model/model-error.ts";
export type { Model, ModelDelta, ModelReply, ModelRequest } from "./agent/model/model.ts";
export {
  createModel,
  type ModelProviderFactory,
  type ModelProviderOptions,
  registerModelProvider,
} from "./agent/model/model-providers.ts";
export type { WithModelName } from "./agent/model/named-model.ts";
export type { RetryOptions } from "./agent/model/retry.ts";
export { type ResumedSession, type ResumeOptions, resumeSession } from "./agent/persist/resume-session.ts";
export type { Persist } from "./agent/persist/persist-option.ts";
export type { RunError } from "./session/log/run-event.ts";
export type { RunEvent } from "./agent/run-event.ts";
export type { Approval } from "./session/log/run-event.ts";
export { type CompressOptions, runSessionCompress } from "./agent/run-session-compress.ts";
export { runSessionLoop, type SessionInput } from "./agent/run-session-loop.ts";
export type { StandardSchema } from "./agent/schema/standard-schema.ts";
export type { ValueOf, ValueSchema } from "./agent/schema/value-schema.ts";
export type { Answer, RunStatus, SessionRun } from "./agent/session-run.ts";
export type { TelemetryOptions } from "./agent/telemetry.ts";
export { defineTool, type ToolDefinition } from "./agent/tools/define-tool.ts";
export type { ToolEffects } from "./agent/tools/tool-effects.ts";
export type { ToolFailure } from "./agent/tools/tool-result.ts";
export type { CheckedArguments, Tool, ToolContent, ToolContext } from "./agent/tools/tool.ts";
export { ASK_POLICIES, type AskPolicy } from "./agent/tools/ask-policy.ts";
export type { JsonObject, JsonValue } from "./internal/json.ts";
export type { Actor } from "./lifecycle/access.ts";
export type { UserBudget } from "./lifecycle/budgets/user-budget.ts";
export type { SessionManagerInit } from "./lifecycle/manager-options.ts";
export { openManager, type OpenManagerOptions } from "./lifecycle/open-manager.ts";
export { SessionManager } from "./lifecycle/session-manager.ts";
export {
  BudgetExceededError,
  CheckpointNotFoundError,
  LeaseLostError,
  LineageError,
  SessionBusyError,
  SessionCapacityError,
  SessionClosedError,
  SessionConflictError,
  SessionDamagedError,
  SessionError,
  type SessionErrorCode,
  SessionExpiredError,
  SessionNotFoundError,
  SessionSuspendedError,
  SessionTransitionError,
  UnknownEntryError,
} from "./session/errors.ts";
export type {
  Entry,
  EntryBody,
  EntryDraft,
  EntryOf,
  FactBody,
  NodeBody,
  SessionStatus,
  ThinkingLevel,
} from "./session/log/entry.ts";
export type { PathSummary, SessionHead } from "./session/log/fold.ts";
export { createHeader, type Lineage, type SessionHeader } from "./session/log/header.ts";
export type { Settings } from "./session/log/settings.ts";
export type { Setup, ToolChoice, ToolSchema } from "./session/log/setup.ts";
export type { RunInput } from "./session/run-input.ts";
export {
  type AssistantMessage,
  type Content,
  type ContentPart,
  type InputMessage,
  type Message,
  type StopReason,
  textOf,
  type ToolCall,
  type ToolMessage,
} from "./session/message.ts";
export type { SessionState, SessionTurn } from "./session/state/state.ts";
export type { Checkpoint, SessionStore } from "./session/store.ts";
export type { Usage } from "./session/usage.ts";
export { Session } from "./session/value/session.ts";
export { openStore, type OpenStoreOptions } from "./stores/open-store.ts";
export type { SkeinConfig } from "./tools/skein-config.ts";
export type { StoreTreeOptions, TreeOptions } from "./tree/file-options.ts";
export { createTree, openTree } from "./tree/open-tree.ts";
export { SessionTree } from "./tree/session-tree.ts";
