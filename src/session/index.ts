export type { JsonObject, JsonValue } from "../internal/json.ts";
export { computeAnalytics, type SessionAnalytics } from "./state/analytics.ts";
export type { CallAnalytics, Latency, ToolCount } from "./state/call-samples.ts";
export {
  type AppendInput,
  type AddedEntry,
  type AppendPlan,
  type Found,
  type KnownLog,
  NOTHING_FOUND,
  NOTHING_KNOWN,
  type PlannedAppend,
  planAppend,
  planFirst,
  planLater,
  planNow,
  type StoredEntry,
  type Wanted,
} from "./log/append-plan.ts";
export {
  COMPACTION_DEFAULTS,
  type CompactionPlan,
  type CompactionSettings,
  contextTokens,
  prepareCompaction,
  shouldCompact,
} from "./context/compaction.ts";
export { acceptable, buildContext, type ModelContext } from "./context/context.ts";
export type { ContextPruner, PruneLimits } from "./context/context-pruner.ts";
export type { CheckedDraft } from "./log/draft.ts";
export {
  type Entry,
  type EntryBody,
  type EntryDraft,
  type EntryOf,
  type EntryStamp,
  type FactBody,
  isNode,
  type LostBody,
  type NodeBody,
  type SessionStatus,
  type ThinkingLevel,
} from "./log/entry.ts";
export {
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
} from "./errors.ts";
export type { FileOperations } from "./context/file-operations.ts";
export {
  EMPTY_PATH,
  emptyHead,
  type PathSummary,
  type SessionHead,
  inheritedCount,
  stepHead,
  stepPath,
} from "./log/fold.ts";
export { forkedHeader } from "./log/forked-header.ts";
export {
  createHeader,
  FORMAT_VERSION,
  type ForkPoint,
  type Inherited,
  type Lineage,
  type LineageKind,
  type SandboxPlacement,
  type SessionHeader,
} from "./log/header.ts";
export type { HookResult, SessionHooks } from "./context/hooks.ts";
export {
  ancestors,
  descendants,
  edges,
  type LineageEdge,
  type SessionLike,
  validateAcyclic,
} from "./lineage/lineage.ts";
export { type DrawnSession, toDot, toMermaid } from "./lineage/lineage-diagram.ts";
export {
  type ExportableSession,
  type LineageRow,
  parseLineageJsonl,
  sessionToRow,
  toJsonl,
} from "./lineage/lineage-export.ts";
export { type LineageJournal, trackLineage, withLineage } from "./lineage/lineage-scope.ts";
export { lineageUsage, type SpendingSession } from "./lineage/lineage-usage.ts";
export { type HookReport, HookRunner } from "./context/run-hooks.ts";
export { APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX, HEADER_BYTES_MAX, ID_CHARACTERS_MAX, PAGE_ITEMS_MAX } from "./limits.ts";
export type { SessionSummary } from "./listing.ts";
export { type CompactionView, inspectCompaction } from "./context/inspect-compaction.ts";
export {
  type AssistantMessage,
  type Content,
  type ContentPart,
  type InputMessage,
  type Message,
  type StopReason,
  type ToolCall,
  type ToolMessage,
  textOf,
} from "./message.ts";
export {
  RelevanceContextPruner,
  type RelevanceContextPrunerOptions,
  type RelevanceScorer,
  type ScoredQuery,
  type ScoredTurn,
} from "./context/relevance-context-pruner.ts";
export type { OpenRun, RunsWord } from "./log/open-runs.ts";
export { registerSandboxBackend } from "./sandbox/sandbox-backends.ts";
export { hideFromSandboxes } from "./sandbox/sandbox-hidden-paths.ts";
export {
  type ExecOptions,
  type ExecResult,
  type FileChange,
  type FileChanges,
  type Sandbox,
  type SandboxBackend,
  type SandboxCapabilities,
  SandboxError,
  type SandboxFailure,
  type SandboxFile,
  type SandboxLimits,
  type SandboxReach,
  type SandboxSpec,
} from "./sandbox/sandbox.ts";
export { parseSearch, type SearchTerm } from "./search.ts";
export { readSettings, type Settings, type SettingsChange, settingsFrom, type SettingsNode } from "./log/settings.ts";
export {
  createSystemSession,
  createUserSession,
  detachSession,
  forkSession,
  mergeSessions,
  Session,
  type SessionInit,
} from "./value/session.ts";
export { SessionRegistry, sessionRegistry } from "./value/session-registry.ts";
export type { SessionState, SessionTurn } from "./state/state.ts";
export { type KeyDiff, StateDiff } from "./state/state-diff.ts";
export { SessionStateMachine } from "./state/state-machine.ts";
export type {
  AggregateKey,
  AggregateQuery,
  AggregateRow,
  AppendOptions,
  AppendResult,
  Checkpoint,
  CreateOptions,
  DamagedSession,
  ForkOptions,
  UndeleteOptions,
  Guard,
  Lease,
  LeaseInfo,
  PurgeQuery,
  ReadJsonOptions,
  ReadOptions,
  SearchHit,
  SearchMatch,
  SessionPage,
  SessionQuery,
  SessionStore,
  StoreCapabilities,
  StoreEraser,
  WatchOptions,
} from "./store.ts";
export type { DriverPurge, LeaseTable, ListPosition, ReadRange, StoreDriver, Subscription } from "./store-driver.ts";
export { entryTokens, estimateTextTokens, messageTokens, type TextTokenizer } from "./context/tokens.ts";
export {
  assistantRow,
  type Row,
  type RowInit,
  type RowKind,
  systemRow,
  Transcript,
  type TranscriptOrigin,
  toolResultRow,
  userRow,
} from "./value/transcript.ts";
export { branchTo, buildTree, labelsOf, type TreeNode } from "./log/tree.ts";
export type { TurnSplice, TurnsDiff } from "./state/turn-splices.ts";
export { addUsage, type Usage } from "./usage.ts";
