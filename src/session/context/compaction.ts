import { isCutShort } from "../log/run-fold.ts";
import { checkObjects, checkOptionsOf, type KeysOf } from "../check-arguments.ts";
import { acceptable, contextPath, messagesOf } from "./context.ts";
import type { Entry, EntryOf } from "../log/entry.ts";
import { SessionError } from "../errors.ts";
import { type FileOperations, fileOperations } from "./file-operations.ts";
import { entryTokens, estimateTextTokens, messageTokens, type TextTokenizer } from "./tokens.ts";

/** When to compact, and how much to keep unchanged. */
export interface CompactionSettings {
  /** Tokens of the context window that are reserved for the next answer. */
  readonly reserveTokens: number;
  /** About how many of the latest tokens are kept unchanged. */
  readonly keepRecentTokens: number;
  readonly tokenizer: TextTokenizer;
  /** The ids of undone compactions, which are ignored. */
  readonly undone: readonly string[];
}

const SETTINGS: KeysOf<CompactionSettings> = {
  reserveTokens: true,
  keepRecentTokens: true,
  tokenizer: true,
  undone: true,
};

/** The plan of a compaction; nothing is changed yet. */
export interface CompactionPlan {
  readonly firstKeptEntryId: string;
  /** The entries that the summary must cover, oldest first. */
  readonly summarize: readonly Entry[];
  /** The beginning of the turn in which the cut is, which is summarized separately; empty if the cut is between turns. */
  readonly turnPrefix: readonly Entry[];
  /** The entries that are kept unchanged. */
  readonly keep: readonly Entry[];
  /** The summary of the previous compaction, to be updated. */
  readonly previousSummary: string | null;
  readonly tokensBefore: number;
  readonly details: FileOperations;
}

/** The default settings. */
export const COMPACTION_DEFAULTS: CompactionSettings = Object.freeze({
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
  tokenizer: estimateTextTokens,
  undone: [],
});

/**
 * Plans a compaction of a path (root first; it may begin at the first entry of the context). Null if there is nothing to
 * summarize.
 */
export function prepareCompaction(
  path: readonly Entry[],
  settings: Partial<CompactionSettings> = {},
): CompactionPlan | null {
  checkPath(path, "prepareCompaction");
  const { keepRecentTokens, tokenizer, undone } = checkSettings(settings);
  const { compaction, entries: range } = contextPath(path, new Set(undone));
  const cut = cutPoint(range, keepRecentTokens, tokenizer);
  if (cut === null) return null;
  const turnStart = startsTurn(range[cut] as Entry)
    ? cut
    : range.findLastIndex((entry, index) => index < cut && startsTurn(entry));
  const split = turnStart >= 0 && turnStart < cut;
  const summarize = range.slice(0, split ? turnStart : cut);
  const turnPrefix = split ? range.slice(turnStart, cut) : [];
  if (!hasContent([...summarize, ...turnPrefix], tokenizer)) return null;
  return {
    firstKeptEntryId: (range[cut] as Entry).id,
    summarize,
    turnPrefix,
    keep: range.slice(cut),
    previousSummary: compaction?.summary ?? null,
    tokensBefore: contextTokens(path, { tokenizer, undone }),
    details: fileOperations([...summarize, ...turnPrefix], compaction?.details),
  };
}

/**
 * The number of tokens in the context of a path: the provider's last count plus an estimate for later entries, or else
 * an estimate for all of them. A count from before an edit is ignored after it.
 */
export function contextTokens(path: readonly Entry[], settings: Partial<CompactionSettings> = {}): number {
  checkPath(path, "contextTokens");
  const { tokenizer, undone } = checkSettings(settings);
  const { compaction, entries } = contextPath(path, new Set(undone));
  const sum = (some: readonly Entry[]) => some.reduce((tokens, entry) => tokens + entryTokens(entry, tokenizer), 0);
  const estimated = () => sum(compaction === null ? entries : [compaction, ...entries]);
  const since = compaction === null ? path : path.slice(path.indexOf(compaction) + 1);
  const first = firstCountable(since);
  const last = since.findLastIndex((entry, index) => index >= first && countedTokens(entry) > 0);
  if (last < 0) return estimated();
  const counted = countedTokens(since[last] as Entry) + sum(since.slice(last + 1).filter(isNotCompaction));
  // After an undone compaction, the provider may have counted the shorter context.
  return since.slice(0, last).every(isNotCompaction) ? counted : Math.max(counted, estimated());
}

/**
 * The index of the first entry of a path whose count can include the path's edits: an answer that directly follows an edit was
 * asked for before it.
 */
export function firstCountable(path: readonly Entry[]): number {
  const edit = path.findLastIndex(({ type }) => type === "context_edit");
  if (edit < 0) return 0;
  const said = path.findIndex(({ type }, index) => index > edit && type === "message");
  return said < 0 ? path.length : said + 1;
}

/** Whether a context is so full that the next answer might not fit. */
export function shouldCompact(
  tokens: number,
  contextWindow: number,
  settings: Partial<CompactionSettings> = {},
): boolean {
  return tokens > contextWindow - checkSettings(settings).reserveTokens;
}

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless it is a path. */
export function checkPath(path: unknown, call: string): void {
  checkObjects(path, call, "a list of entries, root first");
}

function checkSettings(settings: Partial<CompactionSettings>): CompactionSettings {
  checkOptionsOf(settings, SETTINGS, "A compaction");
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  const whole: CompactionSettings = { ...COMPACTION_DEFAULTS, ...Object.fromEntries(given) };
  for (const field of ["reserveTokens", "keepRecentTokens"] as const) {
    if (!Number.isFinite(whole[field]) || whole[field] < 0) {
      throw new SessionError("INVALID_OPTION", `${field} is ${whole[field]}; give a number of tokens of 0 or more.`);
    }
  }
  return whole;
}

/** Whether the entries have any content for a summary. */
function hasContent(entries: readonly Entry[], tokenizer: TextTokenizer): boolean {
  return acceptable(entries.flatMap(messagesOf)).some((message) => messageTokens(message, tokenizer) > 0);
}

function isNotCompaction(entry: Entry): boolean {
  return entry.type !== "compaction";
}

/** The provider's token count for this answer, or 0 if there is no reliable one. */
function countedTokens(entry: Entry): number {
  if (entry.type !== "message" || entry.message.role !== "assistant") return 0;
  const { usage, stopReason } = entry.message;
  if (usage === undefined || stopReason === "aborted" || stopReason === "error") return 0;
  return usage.totalTokens > 0 ? usage.totalTokens : usage.inputTokens + usage.outputTokens;
}

/**
 * The index of the cut: the first valid one at which the kept part has at most about `keepRecentTokens`; if there is none, the
 * last valid one. Null if everything fits.
 */
function cutPoint(range: readonly Entry[], keepRecentTokens: number, tokenizer: TextTokenizer): number | null {
  let tokens = 0;
  let from = range.length;
  while (from > 0 && tokens < keepRecentTokens) {
    from--;
    tokens += entryTokens(range[from] as Entry, tokenizer);
  }
  if (tokens < keepRecentTokens) return null;
  const valid = validCuts(range);
  return valid.find((index) => index >= from) ?? valid.at(-1) ?? null;
}

/**
 * The indexes at which the kept part may begin: never at a tool result, never between a call and its result, never after a call
 * of the last answer that still waits for its result.
 */
function validCuts(range: readonly Entry[]): number[] {
  const open = new Set<string>();
  const lastResult = new Map<string, number>();
  for (const [index, entry] of range.entries()) {
    if (entry.type === "message" && entry.message.role === "tool") lastResult.set(entry.message.toolCallId, index);
  }
  const last = range.findLastIndex((entry) => entry.type === "message" && entry.message.role === "assistant");
  const cuts: number[] = [];
  for (const [index, entry] of range.entries()) {
    if (open.size === 0 && canStartKept(entry)) cuts.push(index);
    if (entry.type !== "message") continue;
    if (entry.message.role === "tool") open.delete(entry.message.toolCallId);
    if (entry.message.role !== "assistant") continue;
    const waits = index === last && !isCutShort(entry.message);
    for (const { id } of entry.message.toolCalls ?? []) if (waits || (lastResult.get(id) ?? -1) > index) open.add(id);
  }
  return cuts;
}

function canStartKept(entry: Entry): boolean {
  if (entry.type === "message") return entry.message.role === "user" || entry.message.role === "assistant";
  return entry.type === "custom_message" || entry.type === "branch_summary";
}

function startsTurn(entry: Entry): boolean {
  return canStartKept(entry) && !(entry.type === "message" && entry.message.role === "assistant");
}

/** The effect of a compaction on the context. */
export interface CompactionView {
  readonly compaction: EntryOf<"compaction">;
  /** The entries that its summary replaced, root first. */
  readonly dropped: readonly Entry[];
  /** The entries that it kept unchanged. */
  readonly kept: readonly Entry[];
}

/** Shows the effect of a compaction on a path (root first); null if the path has no such compaction. */
export function inspectCompaction(path: readonly Entry[], compactionId: string): CompactionView | null {
  checkPath(path, "inspectCompaction");
  const at = path.findIndex((entry) => entry.id === compactionId);
  const compaction = path[at];
  if (compaction?.type !== "compaction") return null;
  const before = path.slice(0, at).filter((entry) => entry.type !== "compaction");
  const firstKept = before.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const cut = firstKept < 0 ? before.length : firstKept;
  return { compaction, dropped: before.slice(0, cut), kept: before.slice(cut) };
}
