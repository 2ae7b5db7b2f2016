import type { CallerRights } from "./caller-rights.ts";
import type { JsonObject } from "../internal/json.ts";
import type { MergeConflict, SkippedTurn } from "../lifecycle/merge/merge-strategy.ts";
import type { OpenRunStatus } from "./run-wire.ts";
import type { Entry, EntryDraft, SessionStatus } from "../session/log/entry.ts";
import type { PathSummary, SessionHead } from "../session/log/fold.ts";
import type { Lineage } from "../session/log/header.ts";
import type { Content, Message, ToolCall } from "../session/message.ts";
import type { SessionAnalytics } from "../session/state/analytics.ts";
import type { SessionState } from "../session/state/state.ts";
import type { Settings } from "../session/log/settings.ts";
import type { FileChanges } from "../session/sandbox/sandbox.ts";
import type { AggregateRow, Checkpoint, SearchMatch } from "../session/store.ts";
import type { Usage } from "../session/usage.ts";

/*
 * What server and client say to each other, as types. The server's schemas are checked against these, and the client
 * takes and gives nothing else, so that neither can change alone.
 */

/** An answer that says what is wrong, by RFC 9457; `code` is one of the codes in docs/errors.md, or the server's own. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  /** The parts of a request that are wrong, where it is the request. */
  readonly problems?: readonly { readonly path: string; readonly message: string }[];
}

/** One page; `next` is the cursor of the following one, or null. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Who the server takes the caller for. */
export interface Me {
  readonly userId: string;
  readonly admin: boolean;
  readonly may: CallerRights;
}

/** What can be run here. */
export interface Catalogue {
  readonly agents: readonly AgentInfo[];
  readonly models: readonly ModelInfo[];
  readonly groups: readonly GroupInfo[];
  /** Whether the server has a place where tools act in sessions that do not say so themselves. */
  readonly hasPlace: boolean;
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

/** A session in a listing: its head without what is set in it, and the run that has it now. */
export interface ListedSession extends Omit<SessionHead, "path"> {
  readonly path: Omit<PathSummary, "settings">;
  readonly running: RunningInfo | null;
}

/** A session: its head, and the run that has it now. */
export interface SessionView extends ListedSession {
  readonly path: PathView;
}

/** What was found in a file that another program has written. */
export interface ImportFound {
  /** Whose file it is. */
  readonly format: string;
  /** Entries that the session got. */
  readonly added: number;
  /** Lines that became entries, that are kept as they are, and that could not be read. */
  readonly mapped: number;
  readonly kept: number;
  readonly lost: number;
  /** How many lines, or parts of lines, are of each kind that this version does not know; they are kept. */
  readonly unknownKinds: Readonly<Record<string, number>>;
}

/** A session that was imported. */
export interface ImportedView extends SessionView {
  /** Only for a file of another program. */
  readonly found?: ImportFound;
}

/** What the path to a session's leaf adds up to, and what is set on it. */
export interface PathView extends Omit<PathSummary, "settings"> {
  readonly settings: Settings;
}

/** The run that has a session, in whatever process. */
export interface RunningInfo {
  readonly runId: string;
}

/** Which sessions to list. */
export interface ListSessions {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  readonly parentId?: string;
  /** Only sessions with a run that stands there. */
  readonly runs?: Exclude<OpenRunStatus, "parked"> | "asking";
  readonly deleted?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

/** A session to make; whose it is, only an administrator may say. */
export interface NewSession {
  readonly userId?: string;
  readonly name?: string;
  readonly cwd?: string;
  readonly metadata?: JsonObject;
  readonly systemPrompt?: string;
}

/** What to change of a session; an empty name takes the name off. */
export interface SessionPatch {
  readonly name?: string;
  readonly variables?: { readonly set?: JsonObject; readonly unset?: readonly string[] };
}

/** Why something ends. */
export interface ReasonRequest {
  readonly reason?: string;
}

/** A turn to add. */
export interface NewTurn {
  readonly turnId?: string;
  readonly role: Message["role"];
  readonly content: Content | null;
  readonly toolCalls?: readonly ToolCall[];
  /** Of a tool's answer: the call that it answers, the tool, and whether the call failed. */
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

/** What an append did: the session's version after it, and the entry of each draft. */
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

/** Where the leaf is to stand (null: before the root), and what to say there of the branch that is left. */
export interface LeafRequest {
  readonly entryId: string | null;
  readonly summary?: string;
}

/** The label of an entry; null takes it off. */
export interface LabelRequest {
  readonly label: string | null;
}

/** The beginning of a side branch to hide. */
export interface PruneRequest {
  readonly entryId: string;
}

/** What the model would see next, part by part. */
export interface ContextView {
  readonly systemPrompt: string | null;
  readonly model: string | null;
  readonly thinkingLevel: string;
  readonly variables: JsonObject;
  readonly parts: readonly ContextPartView[];
  readonly tokens: number;
  /** The compaction that stands at the beginning, with what it left out. */
  readonly compaction: { readonly entryId: string; readonly summary: string; readonly droppedEntries: number } | null;
}

/** One message of a context. */
export interface ContextPartView {
  /** The entry it comes from; null where it comes from none. */
  readonly entryId: string | null;
  readonly message: Message;
  readonly tokens: number;
}

/** What a compaction would do; null `plan` when there is nothing to leave out. */
export interface CompactionPreview {
  readonly plan: {
    readonly firstKeptEntryId: string;
    readonly tokensBefore: number;
    readonly droppedEntries: number;
    readonly keptEntries: number;
  } | null;
}

/** How to compact. */
export interface CompactRequest {
  readonly model?: string;
  readonly instructions?: string;
  readonly keepRecentTokens?: number;
}

/** What a compaction did; null when there was nothing to summarise. */
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
  /** For `selective`: which turns. */
  readonly turnIds?: readonly string[];
  /** For `summary`: which model, as `provider/id`. */
  readonly model?: string;
  readonly dryRun?: boolean;
}

/** What a merge did, or would do. */
export interface MergeView {
  readonly state: SessionState;
  readonly appended: readonly string[];
  readonly skipped: readonly SkippedTurn[];
  readonly conflicts: readonly MergeConflict[];
}

/** A checkpoint to make. */
export interface NewCheckpoint {
  readonly metadata?: JsonObject;
  /** Whether it is to hold the files of the session's place, too. */
  readonly files?: boolean;
}

/** How to go back to a checkpoint. */
export interface RestoreRequest {
  /** Whether the files that it holds are to come back, too; those that are there now are held in another one first. */
  readonly files?: boolean;
}

/** A session that went back to a checkpoint. */
export interface RestoredSession extends SessionView {
  /** The checkpoint that holds the files which were there before; null where files stayed as they were. */
  readonly kept: Checkpoint | null;
}

/** The checkpoints of a session, oldest first. */
export interface CheckpointList {
  readonly items: readonly Checkpoint[];
}

/** What is different between two checkpoints of a session. */
export interface CheckpointDiff {
  readonly from: Checkpoint;
  readonly to: Checkpoint;
  readonly state: JsonObject;
  /** The files that differ; null where they were not asked for, and where not both hold files that can be compared. */
  readonly files: FileChanges | null;
}

/** The sessions that a session came from and that came from it. */
export interface LineageView {
  readonly nodes: readonly LineageNodeView[];
  readonly edges: readonly { readonly parent: string; readonly child: string }[];
  readonly usage: Usage;
  readonly cost: number;
}

/** A session in a lineage; what is not there any more, or is another's, has only its id. */
export interface LineageNodeView {
  readonly id: string;
  readonly name: string | null;
  /** What a fork was called when it was made; null for what is no fork. */
  readonly branchName: string | null;
  readonly lineage: Lineage | null;
  readonly status: SessionStatus | null;
  readonly usage: Usage | null;
  readonly cost: number | null;
  readonly createdAt: string | null;
}

/** What to add up. */
export interface AnalyticsRequest {
  readonly userId?: string;
  readonly from?: string;
  readonly to?: string;
  readonly groupBy?: readonly ("day" | "model" | "user")[];
}

/** Sums over sessions. */
export interface AnalyticsView {
  readonly rows: readonly AnalyticsRowView[];
}

/** One sum; imported work is a figure of its own, and in no other. */
export type AnalyticsRowView = Omit<AggregateRow, "imported"> & { readonly imported?: ImportedFigures };

/** What imported work adds up to. */
export interface ImportedFigures {
  readonly messages: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** In US dollars, as far as it is on record or its models have a price; null where nothing is known. */
  readonly cost: number | null;
  /** Whether some of the cost was computed from prices, because nobody recorded it. */
  readonly costComputed: boolean;
}

/** What a session adds up to; what nobody recorded the cost of is computed from prices where its model has one. */
export interface SessionAnalyticsView extends SessionAnalytics {
  /** The cost of its answers, what is on record and what is computed; null where nothing is known. */
  readonly shownCost: number | null;
  readonly costComputed: boolean;
}

/** Which answers and calls to look at. */
export type CallAnalyticsRequest = Omit<AnalyticsRequest, "groupBy">;

/** What was found by a search. */
export interface SearchView {
  readonly items: readonly SearchHitView[];
}

/** A session that matches a search, and the first matches. */
export interface SearchHitView {
  readonly head: ListedSession;
  readonly matches: readonly SearchMatch[];
}
