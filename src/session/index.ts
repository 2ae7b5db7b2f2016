export type { JsonObject, JsonValue } from "../internal/json.ts";
export { computeAnalytics, type SessionAnalytics } from "./analytics.ts";
export type { CallAnalytics, Latency, ToolCount } from "./call-samples.ts";
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
} from "./append-plan.ts";
export {
  COMPACTION_DEFAULTS,
  type CompactionPlan,
  type CompactionSettings,
  contextTokens,
  prepareCompaction,
  shouldCompact,
} from "./compaction.ts";
export { acceptable, buildContext, type ModelContext } from "./context.ts";
export type { ContextPruner, PruneLimits } from "./context-pruner.ts";
export type { CheckedDraft } from "./draft.ts";
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
} from "./entry.ts";
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
export type { FileOperations } from "./file-operations.ts";
export {
  EMPTY_PATH,
  emptyHead,
  type PathSummary,
  type SessionHead,
  inheritedCount,
  stepHead,
  stepPath,
} from "./fold.ts";
export { forkedHeader } from "./forked-header.ts";
export {
  createHeader,
  FORMAT_VERSION,
  type ForkPoint,
  type Inherited,
  type Lineage,
  type LineageKind,
  type SandboxPlacement,
  type SessionHeader,
} from "./header.ts";
export type { HookResult, SessionHooks } from "./hooks.ts";
export { ancestors, descendants, edges, type LineageEdge, type SessionLike, validateAcyclic } from "./lineage.ts";
export { type DrawnSession, toDot, toMermaid } from "./lineage-diagram.ts";
export {
  type ExportableSession,
  type LineageRow,
  parseLineageJsonl,
  sessionToRow,
  toJsonl,
} from "./lineage-export.ts";
export { type LineageJournal, trackLineage, withLineage } from "./lineage-scope.ts";
export { lineageUsage, type SpendingSession } from "./lineage-usage.ts";
export { type HookReport, HookRunner } from "./run-hooks.ts";
export { APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX, HEADER_BYTES_MAX, ID_CHARACTERS_MAX, PAGE_ITEMS_MAX } from "./limits.ts";
export type { SessionSummary } from "./listing.ts";
export { type CompactionView, inspectCompaction } from "./inspect-compaction.ts";
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
} from "./relevance-context-pruner.ts";
export type { OpenRun, RunsWord } from "./open-runs.ts";
export { registerSandboxBackend } from "./sandbox-backends.ts";
export { hideFromSandboxes } from "./sandbox-hidden-paths.ts";
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
} from "./sandbox.ts";
export { parseSearch, type SearchTerm } from "./search.ts";
export { readSettings, type Settings, type SettingsChange, settingsFrom, type SettingsNode } from "./settings.ts";
export {
  createSystemSession,
  createUserSession,
  detachSession,
  forkSession,
  mergeSessions,
  Session,
  type SessionInit,
} from "./session.ts";
export { SessionRegistry, sessionRegistry } from "./session-registry.ts";
export type { SessionState, SessionTurn } from "./state.ts";
export { type KeyDiff, StateDiff } from "./state-diff.ts";
export { SessionStateMachine } from "./state-machine.ts";
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
export type {
  CheckpointTable,
  DriverPurge,
  LeaseTable,
  ListPosition,
  ReadRange,
  SessionListing,
  StoreDriver,
  StoredLease,
  Subscription,
} from "./store-driver.ts";
export { entryTokens, estimateTextTokens, messageTokens, type TextTokenizer } from "./tokens.ts";
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
} from "./transcript.ts";
export { branchTo, buildTree, labelsOf, type TreeNode } from "./tree.ts";
export type { TurnSplice, TurnsDiff } from "./turn-splices.ts";
export { addUsage, type Usage } from "./usage.ts";
