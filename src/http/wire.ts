import type { BudgetLevel } from "../session/payer.ts";
import type { CallerRights } from "./caller-init.ts";
import type { JsonObject } from "../internal/json.ts";
import type { MergeConflict, SkippedTurn } from "../lifecycle/merge/merge-strategy.ts";
import type { OpenRunStatus } from "./run-wire.ts";
import type { Entry, EntryDraft, EntryOf, SessionStatus } from "../session/log/entry.ts";
import type { PathSummary, SessionHead } from "../session/log/fold.ts";
import type { Lineage } from "../session/log/header.ts";
import type { Content, Message, ToolCall } from "../session/message.ts";
import type { SessionAnalytics } from "../session/state/analytics.ts";
import type { SessionState } from "../session/state/state.ts";
import type { Settings } from "../session/log/settings.ts";
import type { ToolSchema } from "../session/log/setup.ts";
import type { FileChanges } from "../session/sandbox/sandbox.ts";
import type { AggregateRow, Checkpoint, SearchMatch } from "../session/store.ts";
import type { Usage } from "../session/usage.ts";

/*
 * The types of requests and answers. The server's schemas are type-checked against them, and the client uses no others, so that
 * neither side can change alone.
 */

/** A problem document by RFC 9457; `code` is one of the codes in docs/errors.md, or one of the server's own. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  /** The invalid parts of the request, if the request is invalid. */
  readonly problems?: readonly { readonly path: string; readonly message: string }[];
}

/** One page; `next` is the cursor of the next one, or null. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** The authenticated caller. */
export interface Me {
  readonly userId: string;
  readonly admin: boolean;
  readonly may: CallerRights;
}

/** The agents, models and groups that the server offers. */
export interface Catalogue {
  readonly agents: readonly AgentInfo[];
  readonly models: readonly ModelInfo[];
  readonly groups: readonly GroupInfo[];
  /** Whether the server has a default place for tools. */
  readonly hasPlace: boolean;
}

/** The programs on the server's machine whose sessions can be imported; none if the server does not offer it. */
export interface ProgramsView {
  readonly offered: boolean;
  readonly programs: readonly ProgramView[];
}

/** A program on the server's machine, and the progress of its import. */
export interface ProgramView {
  readonly name: string;
  /** The program's display name. */
  readonly title: string;
  /** The number of session files; null if the program keeps its sessions in a database. */
  readonly sessions: number | null;
  /** When the last session changed. */
  readonly latestAt: string | null;
  /** The command that exports a session from the program's database; null if it keeps files. */
  readonly exportCommand: string | null;
  /** How far the import is; null if none was begun. */
  readonly progress: {
    readonly state: "queued" | "importing" | "following" | "failed";
    readonly read: number;
    readonly files: number;
    /** Why it failed. */
    readonly problem: string | null;
  } | null;
}

/** An agent that the server offers. */
export interface AgentInfo {
  readonly name: string;
  readonly model: string;
  readonly tools: readonly { readonly name: string; readonly description: string }[];
}

/** A model that the server offers, as `provider/id`. */
export interface ModelInfo {
  readonly id: string;
  readonly contextWindow: number | null;
}

/** A group that the server offers. */
export interface GroupInfo {
  readonly name: string;
  readonly agents: readonly { readonly name: string; readonly role: string }[];
}

/** A session in a listing: its head without settings, and the run that holds its lease. */
export interface ListedSession extends Omit<SessionHead, "path"> {
  readonly path: Omit<PathSummary, "settings">;
  readonly running: RunningInfo | null;
}

/** A session: its head with settings, and the run that holds its lease. */
export interface SessionView extends ListedSession {
  readonly path: PathView;
}

/** A report on a file that another program has written. */
export interface ImportFound {
  /** The name of the program's format. */
  readonly format: string;
  /** How many entries were added to the session. */
  readonly added: number;
  /** How many lines became entries, were kept unchanged, and could not be read. */
  readonly mapped: number;
  readonly kept: number;
  readonly lost: number;
  /** The number of lines, or parts of lines, of each kind that this version does not know; they are kept. */
  readonly unknownKinds: Readonly<Record<string, number>>;
}

/** An imported session. */
export interface ImportedView extends SessionView {
  /** Only for a file of another program. */
  readonly found?: ImportFound;
}

/** The summary of the path to a session's leaf, with its settings. */
export interface PathView extends Omit<PathSummary, "settings"> {
  readonly settings: Settings;
}

/** The run that holds a session's lease, in whatever process. */
export interface RunningInfo {
  readonly runId: string;
}

/** Which sessions to list. */
export interface ListSessions {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  readonly parentId?: string;
  /** Only sessions with a run in this state. */
  readonly runs?: Exclude<OpenRunStatus, "parked"> | "asking";
  /** Only sessions of this program, such as `skein` or `claude-code`. A page may then have fewer sessions than `limit`. */
  readonly program?: string;
  readonly deleted?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

/** A session to create. Only an administrator may set `userId`. */
export interface NewSession {
  readonly userId?: string;
  readonly name?: string;
  readonly cwd?: string;
  readonly metadata?: JsonObject;
  readonly systemPrompt?: string;
}

/** Changes to a session; an empty name removes the name. */
export interface SessionPatch {
  readonly name?: string;
  readonly variables?: { readonly set?: JsonObject; readonly unset?: readonly string[] };
}

/** A request with an optional reason. */
export interface ReasonRequest {
  readonly reason?: string;
}

/** A turn to add. */
export interface NewTurn {
  readonly turnId?: string;
  readonly role: Message["role"];
  readonly content: Content | null;
  readonly toolCalls?: readonly ToolCall[];
  /** For a tool result: the call that it answers, the tool, and whether the call failed. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  readonly agent?: string;
  readonly metadata?: JsonObject;
  readonly tokensUsed?: number;
  readonly cost?: number;
  readonly model?: string;
  readonly provider?: string;
}

/** Entries to append. */
export interface NewEntries {
  readonly entries: readonly EntryDraft[];
  readonly expectedVersion?: number;
  readonly onto?: string | null;
}

/** The result of an append: the session's new version, and the entry of each draft. */
export interface AppendView {
  readonly version: number;
  readonly entries: readonly Entry[];
}

/** Which entries of a log to read; `after` and `before` are positions, both exclusive. */
export interface ReadEntries {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** The new leaf (null: before the root), and optionally a summary of the branch that is left. */
export interface LeafRequest {
  readonly entryId: string | null;
  readonly summary?: string;
  /** Moves to the latest leaf below the entry instead; rejected with `SESSION_BUSY` while a run is open. */
  readonly latest?: boolean;
}

/** The label of an entry; null removes it. */
export interface LabelRequest {
  readonly label: string | null;
}

/** The first node of a side branch to hide. */
export interface PruneRequest {
  readonly entryId: string;
}

/** The context of the next request to a model, part by part. */
export interface ContextView {
  readonly systemPrompt: string | null;
  readonly model: string | null;
  readonly thinkingLevel: string;
  readonly variables: JsonObject;
  readonly parts: readonly ContextPartView[];
  readonly tokens: number;
  /** The compaction in force, with the number of entries that it left out. */
  readonly compaction: { readonly entryId: string; readonly summary: string; readonly droppedEntries: number } | null;
  /** The recorded setup of the last answer's request; null if the answer does not name one. */
  readonly setup: ContextSetupView | null;
  /** The entries that edits leave out, oldest first; the results of a call are left out with it and not listed. */
  readonly omitted: readonly OmittedPartView[];
}

/** Instructions, tools and settings as the log recorded them. */
export interface ContextSetupView {
  /** The `setup` entry; some of its fields may be in an earlier one. */
  readonly entryId: string;
  readonly agent: string;
  /** Null if there are none, or if the log has a digest only. */
  readonly instructions: string | null;
  /** Whether the log has a digest instead of the text of the instructions. */
  readonly isDigest: boolean;
  /** In the order in which they are sent. */
  readonly tools: readonly ToolSchema[];
  readonly thinkingLevel: string | null;
  readonly temperature: number | null;
  readonly maxOutputTokens: number | null;
}

/** One message of a context. */
export interface ContextPartView {
  /** The entry that it comes from, or null. */
  readonly entryId: string | null;
  readonly message: Message;
  readonly tokens: number;
  /** The edit that put it in the place of what was said. */
  readonly edit?: ContextEditView;
}

/** An edit in force. */
export interface ContextEditView {
  readonly editId: string;
  readonly reason?: string;
}

/** A message that an edit leaves out of a context. */
export interface OmittedPartView {
  /** The entry that models do not see. */
  readonly entryId: string;
  readonly role: Message["role"];
  /** The beginning of what was said. */
  readonly preview: string;
  readonly edit: ContextEditView;
}

/** An edit of the context: `message` in the place of the entry, or null to leave the entry out (default). */
export interface EditRequest {
  readonly entryId: string;
  readonly message?: Message | null;
  readonly reason?: string;
}

/** The edit to take back. */
export interface UndoEditRequest {
  readonly editId: string;
}

/** The edit that was appended. */
export interface EditView {
  readonly entry: EntryOf<"context_edit">;
}

/** Which part of a report on the prompt cache to read. */
export interface ReadCache {
  /** How many answers, the latest ones (default 200). */
  readonly limit?: number;
  /** How long the provider was asked to keep its cache. */
  readonly lifetimeMs?: number;
}

/** The preview of a compaction; `plan` is null if there is nothing to leave out. */
export interface CompactionPreview {
  readonly plan: {
    readonly firstKeptEntryId: string;
    readonly tokensBefore: number;
    readonly droppedEntries: number;
    readonly keptEntries: number;
  } | null;
}

/** Options of a compaction. */
export interface CompactRequest {
  readonly model?: string;
  readonly instructions?: string;
  readonly keepRecentTokens?: number;
}

/** The compaction entry; null if there was nothing to summarize. */
export interface CompactView {
  readonly entry: Entry | null;
}

/** The compaction to undo (default: the one in force). */
export interface UndoCompactionRequest {
  readonly entryId?: string;
}

/** A branch to fork off. */
export interface ForkRequest {
  readonly branchName: string;
  readonly at?: string | null;
  readonly fromCheckpoint?: string;
}

/** A branch to merge back. */
export interface MergeRequest {
  readonly branchId: string;
  readonly strategy?: "append" | "selective" | "summary";
  /** For `selective`: the turns to merge. */
  readonly turnIds?: readonly string[];
  /** For `summary`: the model that writes it, as `provider/id`. */
  readonly model?: string;
  readonly dryRun?: boolean;
}

/** The result of a merge, or its preview. */
export interface MergeView {
  readonly state: SessionState;
  readonly appended: readonly string[];
  readonly skipped: readonly SkippedTurn[];
  readonly conflicts: readonly MergeConflict[];
}

/** A checkpoint to create. */
export interface NewCheckpoint {
  readonly metadata?: JsonObject;
  /** Whether it also holds the files of the session's place. */
  readonly files?: boolean;
}

/** Options of a restore. */
export interface RestoreRequest {
  /** Whether to restore its files as well; the present files are saved in another checkpoint first. */
  readonly files?: boolean;
}

/** A session after a restore. */
export interface RestoredSession extends SessionView {
  /** The checkpoint with the files from before the restore; null if no files were restored. */
  readonly kept: Checkpoint | null;
}

/** The checkpoints of a session, oldest first. */
export interface CheckpointList {
  readonly items: readonly Checkpoint[];
}

/** The differences between two checkpoints of a session. */
export interface CheckpointDiff {
  readonly from: Checkpoint;
  readonly to: Checkpoint;
  readonly state: JsonObject;
  /** The files that differ; null if they were not requested, or if the checkpoints do not both hold comparable files. */
  readonly files: FileChanges | null;
}

/** The ancestors and descendants of a session. */
export interface LineageView {
  readonly nodes: readonly LineageNodeView[];
  readonly edges: readonly { readonly parent: string; readonly child: string }[];
  readonly usage: Usage;
  readonly cost: number;
}

/** A session in a lineage; a deleted session or another user's has only its id. */
export interface LineageNodeView {
  readonly id: string;
  readonly name: string | null;
  /** The branch name of a fork; null for other sessions. */
  readonly branchName: string | null;
  readonly lineage: Lineage | null;
  readonly status: SessionStatus | null;
  readonly usage: Usage | null;
  readonly cost: number | null;
  readonly createdAt: string | null;
}

/** Selects the sessions and turns to add up. */
export interface AnalyticsRequest {
  readonly userId?: string;
  readonly from?: string;
  readonly to?: string;
  readonly groupBy?: readonly ("day" | "model" | "user")[];
}

/** Totals over sessions. */
export interface AnalyticsView {
  readonly rows: readonly AnalyticsRowView[];
}

/** One row of totals; imported work is counted separately, in `imported` only. */
export type AnalyticsRowView = Omit<AggregateRow, "imported"> & { readonly imported?: ImportedFigures };

/** The totals of imported work. */
export interface ImportedFigures {
  readonly messages: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** In US dollars: recorded costs, and costs computed from prices; null if nothing is known. */
  readonly cost: number | null;
  /** Whether a part of the cost was computed from prices, because it was not recorded. */
  readonly costComputed: boolean;
}

/** The totals of a session; costs that were not recorded are computed from prices, if the model has one. */
export interface SessionAnalyticsView extends SessionAnalytics {
  /** The recorded and the computed cost of its answers; null if nothing is known. */
  readonly shownCost: number | null;
  readonly costComputed: boolean;
}

/** Which answers and calls to measure. */
export type CallAnalyticsRequest = Omit<AnalyticsRequest, "groupBy">;

/** The results of a search. */
export interface SearchView {
  readonly items: readonly SearchHitView[];
}

/** A session that matches a search, and the first matches. */
export interface SearchHitView {
  readonly head: ListedSession;
  readonly matches: readonly SearchMatch[];
}

/** How far a user has used up the budgets. */
export interface BudgetView {
  readonly userId: string;
  /** One for each limit; none if the server has no budgets. */
  readonly levels: readonly BudgetLevel[];
}
