import { cutText } from "../../internal/cut-text.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type Entry, type EntryOf, isNode, type SessionStatus, type ThinkingLevel } from "./entry.ts";
import type { Inherited, SessionHeader } from "./header.ts";
import { FIRST_MESSAGE_CHARACTERS_MAX } from "../limits.ts";
import { textOf } from "../message.ts";
import { type OpenRun, stepRuns } from "./open-runs.ts";
import { type SettingsNode, stepSettings } from "./settings.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../usage.ts";

/**
 * A summary of the path from the root to a node, which makes moving the leaf to that node a single step. Stores keep
 * one with every node.
 */
export interface PathSummary {
  /** The number of nodes on the path. */
  readonly depth: number;
  /** The number of messages on the path. */
  readonly turnCount: number;
  /** The usage of the messages on the path. */
  readonly usage: Usage;
  readonly cost: number;
  /** The last compaction on the path. */
  readonly compactionId: string | null;
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly thinkingLevel: ThinkingLevel;
  /** Where the settings of the path are stored (from its `variables` and `setup` entries); null if it has none. */
  readonly settings: SettingsNode | null;
}

/** The folded state of a log at its end. */
export interface SessionHead {
  readonly header: SessionHeader;
  /** The number of entries in the log. */
  readonly version: number;
  readonly leafId: string | null;
  /** The path to the leaf. */
  readonly path: PathSummary;
  readonly status: SessionStatus;
  readonly statusReason: string | null;
  readonly name: string | null;
  /** When the store last accepted an append, by its own clock. */
  readonly updatedAt: string;
  /** The time of the last message, or of the creation; listings sort by it. */
  readonly modifiedAt: string;
  /** The number of messages ever appended, on all branches. */
  readonly messageCount: number;
  /** The beginning of the first user message that has text. */
  readonly firstMessage: string | null;
  /** The total usage of all branches, summaries included. */
  readonly usage: Usage;
  readonly cost: number;
  /** The session's runs that have not ended, requested ones included. Runs that a fork inherited do not count. */
  readonly openRuns: readonly OpenRun[];
  /** The ids of compactions that the context ignores. */
  readonly undone: readonly string[];
  /** True if a trailer records a regular end of the last run, and no turn or run came after it. */
  readonly closed: boolean;
}

/** The empty path. */
export const EMPTY_PATH: PathSummary = Object.freeze({
  depth: 0,
  turnCount: 0,
  usage: NO_USAGE,
  cost: 0,
  compactionId: null,
  model: null,
  thinkingLevel: "off",
  settings: null,
});

const NOTHING: readonly never[] = Object.freeze([]);

/** The head of a session without entries. */
export function emptyHead(header: SessionHeader): SessionHead {
  return {
    header,
    version: 0,
    leafId: null,
    path: EMPTY_PATH,
    status: "active",
    statusReason: null,
    name: null,
    updatedAt: header.createdAt,
    modifiedAt: header.createdAt,
    messageCount: 0,
    firstMessage: null,
    usage: NO_USAGE,
    cost: 0,
    openRuns: NOTHING,
    undone: NOTHING,
    closed: false,
  };
}

/**
 * Returns the frozen summary of the path that ends with this node, given the summary of its parent and the log's
 * header. `settingsAt` returns the settings at a position of the path, on demand.
 */
export function stepPath(
  parent: PathSummary,
  node: Entry,
  header: Pick<SessionHeader, "inherited">,
  settingsAt: (seq: number) => SettingsNode,
): PathSummary {
  const path = copyPath(parent);
  path.depth += 1;
  switch (node.type) {
    case "message":
      stepMessage(path, node, isCounted(header, node, node.seq));
      break;
    case "compaction":
      path.compactionId = node.id;
      break;
    case "model_change":
      path.model = Object.freeze({ provider: node.provider, modelId: node.modelId });
      break;
    case "thinking_level_change":
      path.thinkingLevel = node.thinkingLevel;
      break;
    case "variables":
    case "setup":
      path.settings = stepSettings(parent.settings, node, settingsAt);
      break;
    default:
      break;
  }
  return Object.freeze(path);
}

/**
 * Returns the frozen head after one more entry. Every store folds with this function only.
 *
 * `path` is the summary of the resulting path: for a node its own (`stepPath`), for a `leaf` its target's; for other
 * entries it is not used. `updatedAt` is the store's clock.
 */
export function stepHead(head: SessionHead, entry: Entry, path: PathSummary, updatedAt: string): SessionHead {
  const next = copyHead(head);
  const counts = isCounted(head.header, entry, head.version);
  const own = isOwn(head.header, entry, head.version);
  const runs = own ? stepRuns(head.openRuns, entry) : head.openRuns;
  if (runs !== head.openRuns) next.openRuns = freezeDeep(runs);
  next.version += 1;
  next.updatedAt = updatedAt;
  if (isNode(entry)) {
    next.closed = false;
    // A node appended below an entry that is not the leaf does not move the leaf.
    if (entry.parentId === head.leafId) {
      next.leafId = entry.id;
      next.path = path;
    }
  }
  switch (entry.type) {
    case "message":
      foldMessage(next, entry, counts);
      break;
    case "compaction":
    case "branch_summary":
      if (counts) spend(next, entry);
      break;
    case "leaf":
      next.leafId = entry.targetId;
      next.path = path;
      break;
    case "session_info":
      next.name = entry.name === "" ? null : entry.name;
      break;
    case "status":
      next.status = entry.status;
      next.statusReason = entry.reason ?? null;
      break;
    case "run":
      if (entry.phase === "started") next.closed = false;
      break;
    case "run_request":
      next.closed = false;
      break;
    case "compaction_undone":
      if (!head.undone.includes(entry.targetId)) next.undone = Object.freeze([...head.undone, entry.targetId]);
      break;
    case "trailer":
      next.closed = true;
      break;
    default:
      break;
  }
  return Object.freeze(next);
}

/**
 * How many of a session's first entries it inherited from a fork or an import. Approvals, runs and questions among them
 * belong to the other session and never count in this one.
 */
export function inheritedCount({ forkedFrom, inherited }: Pick<SessionHeader, "forkedFrom" | "inherited">): number {
  return Math.max(forkedFrom?.version ?? 0, inherited?.entries ?? 0);
}

/**
 * Whether the entry at a position is the session's own. An inherited run continues in its source session or not at all,
 * and an imported entry may contain anything.
 */
export function isOwn(
  header: Pick<SessionHeader, "forkedFrom" | "inherited">,
  { inherited }: Pick<Entry, "inherited">,
  seq: number,
): boolean {
  return inherited !== true && seq >= inheritedCount(header);
}

/**
 * Whether an entry was imported, or came from following another program. That program did the work that the entry
 * records.
 */
export function isImported(
  { inherited }: Pick<SessionHeader, "inherited">,
  entry: Pick<Entry, "inherited">,
  seq: number,
): boolean {
  return inherited !== undefined && (entry.inherited === true || seq < inherited.entries);
}

/**
 * How many of a session's first entries do not count towards its usage: those of an import that was made without
 * counting.
 */
function uncountedCount({ inherited }: Pick<SessionHeader, "inherited">): number {
  return inherited?.counts === false ? inherited.entries : 0;
}

function isCounted(
  header: Pick<SessionHeader, "inherited">,
  { inherited }: Pick<Entry, "inherited">,
  seq: number,
): boolean {
  return seq >= uncountedCount(header) && !(inherited === true && header.inherited?.counts === false);
}

/**
 * The position of the first entry that a sum over several sessions counts in this one. Entries that a fork copied count
 * once, in their source.
 */
export function firstSummed(header: SessionHeader): number {
  return Math.max(header.forkedFrom?.version ?? 0, uncountedCount(header));
}

/** The header field `inherited` of a session that starts with another session's first entries. */
export function inheritedUpTo({ inherited }: SessionHeader, version: number): { readonly inherited?: Inherited } {
  return inherited === undefined ? {} : { inherited: { ...inherited, entries: Math.min(inherited.entries, version) } };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

type Spending = { readonly usage?: Usage; readonly cost?: number };

function spend(sum: { usage: Usage; cost: number }, { usage, cost }: Spending): void {
  sum.usage = addUsage(sum.usage, usage);
  sum.cost = addCost(sum.cost, cost);
}

function stepMessage(path: Mutable<PathSummary>, { message }: EntryOf<"message">, counts: boolean): void {
  path.turnCount += 1;
  if (message.role !== "assistant") return;
  if (counts) spend(path, message);
  const { provider, model } = message;
  if (provider !== undefined && model !== undefined) path.model = Object.freeze({ provider, modelId: model });
}

function foldMessage(head: Mutable<SessionHead>, entry: EntryOf<"message">, counts: boolean): void {
  const { message } = entry;
  head.messageCount += 1;
  head.modifiedAt = entry.timestamp;
  if (message.role === "user" && head.firstMessage === null) {
    head.firstMessage = firstLineOf(textOf(message.content)) || null;
  }
  if (message.role === "assistant" && counts) spend(head, message);
}

function firstLineOf(text: string): string {
  const start = cutText(text.trimStart(), 0, FIRST_MESSAGE_CHARACTERS_MAX * 4);
  const line = start.replace(/\s+/g, " ").slice(0, FIRST_MESSAGE_CHARACTERS_MAX);
  // A lone surrogate at the cut would not survive UTF-8.
  return line.replace(/[\ud800-\udbff]$/, "").trimEnd();
}

// Copied field by field: this runs at every append, and spreading a frozen object is many times slower.
function copyPath(path: PathSummary): Mutable<PathSummary> {
  return {
    depth: path.depth,
    turnCount: path.turnCount,
    usage: path.usage,
    cost: path.cost,
    compactionId: path.compactionId,
    model: path.model,
    thinkingLevel: path.thinkingLevel,
    settings: path.settings,
  };
}

function copyHead(head: SessionHead): Mutable<SessionHead> {
  return {
    header: head.header,
    version: head.version,
    leafId: head.leafId,
    path: head.path,
    status: head.status,
    statusReason: head.statusReason,
    name: head.name,
    updatedAt: head.updatedAt,
    modifiedAt: head.modifiedAt,
    messageCount: head.messageCount,
    firstMessage: head.firstMessage,
    usage: head.usage,
    cost: head.cost,
    openRuns: head.openRuns,
    undone: head.undone,
    closed: head.closed,
  };
}
