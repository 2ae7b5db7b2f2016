export type { ActorOptions } from "./access.ts";
export type { Consolidator, MemoryEntry, WorkingMemory } from "./after-write.ts";
export {
  type AggregateAnalytics,
  aggregateAnalytics,
  type AnalyticsQuery,
  type AnalyticsTotals,
} from "./aggregate-analytics.ts";
export { callAnalytics, type CallQuery } from "./call-analytics.ts";
export type { Health, HealthOptions } from "./check-health.ts";
export {
  type CheckpointInit,
  CheckpointManager,
  type CheckpointManagerOptions,
  type RestoreOptions,
} from "./checkpoints/checkpoint-manager.ts";
export { sessionConfigFromEnvironment } from "./config-from-environment.ts";
export type { CreateSession } from "./create-session.ts";
export type {
  EraseOptions,
  EraseProgress,
  EraseReport,
  EraseTarget,
  KeptByFork,
  NotCovered,
} from "./erase/erase-report.ts";
export type { UserBudgets } from "./budgets/user-budgets.ts";
export type { BudgetLevel, BudgetUnit } from "../session/payer.ts";
export type { ManagedForkOptions, ManagedStateOptions } from "./manager-options.ts";
export { AppendMerge } from "./merge/append-merge.ts";
export {
  type BranchForkOptions,
  BranchManager,
  type BranchManagerOptions,
  type MergeOptions,
} from "./merge/branch-manager.ts";
export type {
  MergeConflict,
  MergeContext,
  MergeOutcome,
  MergeResult,
  MergeStrategy,
  SkippedTurn,
} from "./merge/merge-strategy.ts";
export { SelectiveMerge } from "./merge/selective-merge.ts";
export { type SummarizeTurns, SummaryMerge, type SummaryMergeOptions } from "./merge/summary-merge.ts";
export type { StateOptions } from "./read-state.ts";
export type { FailureContext, ReportFailure } from "./report-failure.ts";
export {
  applyRetention,
  type RetentionOptions,
  type RetentionProgress,
  type RetentionReport,
  type RetentionRule,
} from "./retention.ts";
export type { DueRun } from "./runs/due-run.ts";
export type { OpenQuestion, OpenRunState, OpenRunView, RunsPage, RunsQuery } from "./runs/list-runs.ts";
export type { ManagedRunOptions } from "./runs/manage-run.ts";
export type {
  ApproveOptions,
  CancelRun,
  DenyOptions,
  IfBusy,
  ManagedRunRequest,
  QuestionName,
  RequestedRun,
  RequestOptions,
  RunName,
} from "./runs/managed-runs.ts";
export type { AgentsByName, RecoveredRun, RecoverOptions } from "./runs/recover-run.ts";
export {
  checkSessionConfig,
  type ConfigIssue,
  type DeploymentEnvironment,
  SESSION_CONFIG_DEFAULTS,
  type SessionConfig,
  type TurnStrategy,
  validateForEnvironment,
} from "./session-config.ts";
export { type ContextToken, type RequestBinding, SessionContext } from "./session-context.ts";
export { type SessionEvent, type SessionEventDetails, SessionEvents, type SessionEventType } from "./session-events.ts";
export type { SweepOptions } from "./sweeper.ts";
export type { TurnInput } from "./turn-input.ts";
export type { HookResult, SessionHooks } from "../session/context/hooks.ts";
export { type HookReport, HookRunner } from "../session/context/hooks.ts";
export type { OpenRun } from "../session/log/open-runs.ts";
export { computeAnalytics, type SessionAnalytics } from "../session/state/analytics.ts";
export type { CallAnalytics, Latency, ToolCount } from "../session/state/call-samples.ts";
export { type KeyDiff, StateDiff } from "../session/state/state-diff.ts";
export { SessionStateMachine } from "../session/state/state-machine.ts";
export type { TurnsDiff, TurnSplice } from "../session/state/state-diff.ts";
