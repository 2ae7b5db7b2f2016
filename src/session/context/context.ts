import { checkArgument, isObject } from "../check-arguments.ts";
import type { JsonObject } from "../../internal/json.ts";
import { type Entry, type EntryOf, isNode, type ThinkingLevel } from "../log/entry.ts";
import { notANode, UnknownEntryError } from "../errors.ts";
import { EMPTY_PATH, type PathSummary, stepPath } from "../log/fold.ts";
import type { AssistantMessage, Message, ToolCall, ToolMessage } from "../message.ts";
import { NO_SETTINGS, type Settings, SettingsTable } from "../log/settings.ts";
import { branchTo, entryList, indexEntries, leafOf, undoneIds } from "../log/entry-tree.ts";
import { applyEdits } from "./edits.ts";

/** The contents of the next request to a model. */
export interface ModelContext {
  readonly messages: readonly Message[];
  readonly thinkingLevel: ThinkingLevel;
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
}

/**
 * The part of a path that a model sees: the compaction in force, the entries that it kept, and all later entries. Edits are applied: an
 * edited entry is replaced or left out.
 */
export interface ContextPath {
  readonly compaction: EntryOf<"compaction"> | null;
  /** Root first, without the compaction itself. */
  readonly entries: readonly Entry[];
}

/**
 * The context at a leaf (default: the log's own leaf; null: before the root, which is an empty context).
 *
 * @throws {SessionError} `UNKNOWN_ENTRY` if an explicit leaf is not among the entries, `INVALID_ENTRY` if it is a fact.
 */
export function buildContext(entries: Iterable<Entry>, leafId?: string | null): ModelContext {
  const all = entryList(entries, "buildContext");
  const index = indexEntries(all);
  const leaf = leafId === undefined ? leafOf(all) : leafId;
  if (leaf === null) return contextOf(EMPTY_PATH, NO_SETTINGS, { compaction: null, entries: [] });
  const entry = index.get(leaf);
  if (entry === undefined) throw new UnknownEntryError(null, leaf);
  if (!isNode(entry)) throw notANode(null, leaf);
  const path = branchTo(index, leaf);
  const table = new SettingsTable();
  const summary = path.reduce((parent, node) => {
    const next = stepPath(parent, node, {}, table.at);
    table.add(next.settings);
    return next;
  }, EMPTY_PATH);
  return contextOf(summary, table.read(summary.settings), contextPath(path, undoneIds(all)));
}

/** Builds the context of a path from its summary, its settings and the part of it that a model sees. */
export function contextOf(path: PathSummary, settings: Settings, visible: ContextPath): ModelContext {
  const { variables, systemPrompt, activeTools, activeSkills } = settings;
  const messages = visible.entries.flatMap(messagesOf);
  if (visible.compaction !== null) messages.unshift(compactionMessage(visible.compaction.summary));
  return {
    messages: acceptable(messages),
    thinkingLevel: path.thinkingLevel,
    model: path.model,
    variables,
    systemPrompt,
    activeTools,
    activeSkills,
  };
}

/** The part of a whole path that a model sees; determined by the latest compaction that is not undone. */
export function contextPath(path: readonly Entry[], undone: ReadonlySet<string>): ContextPath {
  const at = path.findLastIndex((entry) => entry.type === "compaction" && !undone.has(entry.id));
  if (at < 0) return { compaction: null, entries: seenIn(path) };
  const compaction = path[at] as EntryOf<"compaction">;
  const firstKept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const kept = firstKept < 0 ? [] : path.slice(firstKept, at);
  return { compaction, entries: seenIn([...kept, ...path.slice(at + 1)]) };
}

function seenIn(path: readonly Entry[]): readonly Entry[] {
  return applyEdits(path.filter((entry) => entry.type !== "compaction"));
}

const SUMMARY_START = "The conversation before this point was replaced by this summary:\n\n<summary>\n";
const SUMMARY_END = "\n</summary>";

/** The message that replaces everything before a compaction. */
export function compactionMessage(summary: string): Message {
  return { role: "user", content: `${SUMMARY_START}${summary}${SUMMARY_END}` };
}

/** Extracts the summary from a message of `compactionMessage`; null for other messages. */
export function compactionSummaryOf(message: Message): string | null {
  const { role, content } = message;
  if (role !== "user" || typeof content !== "string") return null;
  if (!content.startsWith(SUMMARY_START) || !content.endsWith(SUMMARY_END)) return null;
  return content.slice(SUMMARY_START.length, -SUMMARY_END.length);
}

/** The messages of an entry for a model: one or none. */
export function messagesOf(entry: Entry): Message[] {
  switch (entry.type) {
    case "message":
      return [entry.message];
    case "custom_message":
      return [{ role: "user", content: entry.content }];
    case "branch_summary":
      if (entry.summary.trim() === "") return [];
      return [
        {
          role: "user",
          content: `Another branch of this conversation was tried and left. What happened there:\n\n<summary>\n${entry.summary}\n</summary>`,
        },
      ];
    default:
      return [];
  }
}

/**
 * Normalizes messages so that every provider accepts them: leaves out empty or failed answers, puts the result of each tool call
 * (or an error, if it is missing) directly after the call, and leaves out results without a call.
 */
export function acceptable(messages: readonly Message[]): Message[] {
  checkArgument(isMessages(messages), messages, "acceptable", "a list of messages");
  const out: (Message | PendingCall)[] = [];
  const open = new Map<string, PendingCall[]>();
  for (const message of messages) {
    if (message.role === "tool") {
      const slot = open.get(message.toolCallId)?.shift();
      if (slot !== undefined) slot.result = message;
      continue;
    }
    if (message.role === "assistant" && (message.stopReason === "error" || isEmpty(message))) continue;
    out.push(message);
    if (message.role !== "assistant" || message.toolCalls === undefined) continue;
    const slots = message.toolCalls.map((call): PendingCall => ({ call, result: null }));
    out.push(...slots);
    // Some models reuse call ids in every answer, so an id refers to the latest answer with it.
    for (const { call } of slots) open.set(call.id, []);
    for (const slot of slots) open.get(slot.call.id)?.push(slot);
  }
  return out.map((item) => ("call" in item ? (item.result ?? interrupted(item.call)) : item));
}

function isMessages(values: unknown): boolean {
  return Array.isArray(values) && values.every(isObject);
}

/** A call, with its result if one was found. */
interface PendingCall {
  readonly call: ToolCall;
  result: ToolMessage | null;
}

function isEmpty(message: AssistantMessage): boolean {
  if ((message.toolCalls?.length ?? 0) > 0) return false;
  const { content } = message;
  if (content === null || typeof content === "string") return content === null || content.trim() === "";
  return content.every((part) => (part.type === "text" || part.type === "thinking") && part.text.trim() === "");
}

function interrupted(call: ToolCall): ToolMessage {
  return {
    role: "tool",
    toolCallId: call.id,
    name: call.name,
    content: JSON.stringify({
      ok: false,
      error_kind: "interrupted",
      message: "The call was interrupted before it gave a result.",
    }),
    isError: true,
  };
}
