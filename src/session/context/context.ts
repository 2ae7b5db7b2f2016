import { checkArgument, isObject } from "../check-arguments.ts";
import type { JsonObject } from "../../internal/json.ts";
import { type Entry, type EntryOf, isNode, type ThinkingLevel } from "../log/entry.ts";
import { notANode, UnknownEntryError } from "../errors.ts";
import { EMPTY_PATH, type PathSummary, stepPath } from "../log/fold.ts";
import type { AssistantMessage, Message, ToolCall, ToolMessage } from "../message.ts";
import { NO_SETTINGS, type Settings, SettingsTable } from "../log/settings.ts";
import { branchTo, entryList, indexEntries, leafOf, undoneIds } from "../log/tree.ts";

/** What the next request to a model consists of. */
export interface ModelContext {
  readonly messages: readonly Message[];
  readonly thinkingLevel: ThinkingLevel;
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
}

/** The part of a path that a model sees: the compaction that counts, what it kept, and what came after it. */
export interface ContextPath {
  readonly compaction: EntryOf<"compaction"> | null;
  /** Root first; the compaction itself is not among them. */
  readonly entries: readonly Entry[];
}

/**
 * The context at a leaf (default: where the log's own leaf stands; null: before the root, which is an empty context).
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

/** The context that a path adds up to, given its summary, its settings and the part of it that a model sees. */
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

/** The part of a whole path that a model sees: the latest compaction that was not undone decides. */
export function contextPath(path: readonly Entry[], undone: ReadonlySet<string>): ContextPath {
  const at = path.findLastIndex((entry) => entry.type === "compaction" && !undone.has(entry.id));
  if (at < 0) return { compaction: null, entries: path.filter((entry) => entry.type !== "compaction") };
  const compaction = path[at] as EntryOf<"compaction">;
  const firstKept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const kept = firstKept < 0 ? [] : path.slice(firstKept, at);
  return { compaction, entries: [...kept, ...path.slice(at + 1)].filter((entry) => entry.type !== "compaction") };
}

const SUMMARY_START = "The conversation before this point was replaced by this summary:\n\n<summary>\n";
const SUMMARY_END = "\n</summary>";

/** The message that stands for everything before a compaction. */
export function compactionMessage(summary: string): Message {
  return { role: "user", content: `${SUMMARY_START}${summary}${SUMMARY_END}` };
}

/** The summary in a message that `compactionMessage` made; null for any other. */
export function compactionSummaryOf(message: Message): string | null {
  const { role, content } = message;
  if (role !== "user" || typeof content !== "string") return null;
  if (!content.startsWith(SUMMARY_START) || !content.endsWith(SUMMARY_END)) return null;
  return content.slice(SUMMARY_START.length, -SUMMARY_END.length);
}

/** What an entry says to a model: one message, or none. */
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
 * The messages as every provider accepts them: empty or failed answers are left out, each tool call is followed by its
 * result, or by an error instead, and a result without its call is left out.
 */
export function acceptable(messages: readonly Message[]): Message[] {
  checkArgument(isMessages(messages), messages, "acceptable", "a list of messages");
  const out: (Message | Slot)[] = [];
  const open = new Map<string, Slot[]>();
  for (const message of messages) {
    if (message.role === "tool") {
      const slot = open.get(message.toolCallId)?.shift();
      if (slot !== undefined) slot.result = message;
      continue;
    }
    if (message.role === "assistant" && (message.stopReason === "error" || isEmpty(message))) continue;
    out.push(message);
    if (message.role !== "assistant" || message.toolCalls === undefined) continue;
    const slots = message.toolCalls.map((call): Slot => ({ call, result: null }));
    out.push(...slots);
    // Some models count their calls anew in every answer, so an id means the latest answer's calls.
    for (const { call } of slots) open.set(call.id, []);
    for (const slot of slots) open.get(slot.call.id)?.push(slot);
  }
  return out.map((item) => ("call" in item ? (item.result ?? interrupted(item.call)) : item));
}

function isMessages(values: unknown): boolean {
  return Array.isArray(values) && values.every(isObject);
}

/** The index of a call's result. */
interface Slot {
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
