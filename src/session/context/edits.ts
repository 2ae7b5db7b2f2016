import { defined } from "../../internal/defined.ts";
import type { Entry, EntryOf } from "../log/entry.ts";
import { roleSeen } from "../log/context-edit.ts";
import type { AssistantMessage, Message } from "../message.ts";

/** An edit that replaces its target, or leaves it out. */
export type Edit = EntryOf<"context_edit"> & { readonly targetId: string; readonly message: Message | null };

/** The effect that an edit of the context would have. */
export interface EditPreview {
  /** The estimated number of tokens that each later request saves; negative if requests get longer. */
  readonly tokensSaved: number;
  /**
   * The tokens of the next request from the first changed message on, which the provider's cache must write again once.
   */
  readonly prefixLost: number;
}

/**
 * The edits in force at the end of a path, root first, by the entry that each changes. The last edit of an entry counts; one that
 * was undone counts only if the undoing was undone. The path may start at any entry, because an edit always comes after its target.
 */
export function editsOn(path: readonly Entry[]): ReadonlyMap<string, Edit> {
  const edits = new Map<string, Edit>();
  const undone = new Set<string>();
  for (let index = path.length - 1; index >= 0; index--) {
    const entry = path[index] as Entry;
    if (entry.type !== "context_edit" || undone.has(entry.id)) continue;
    if (entry.undo !== undefined) undone.add(entry.undo);
    else if (isEdit(entry) && !edits.has(entry.targetId)) edits.set(entry.targetId, entry);
  }
  return edits;
}

/** Whether the entry is an edit and not the undoing of one. */
export function isEdit(entry: Entry): entry is Edit {
  return entry.type === "context_edit" && entry.targetId !== undefined && entry.message !== undefined;
}

/**
 * The entries of a path as models see them, without the edits themselves. `edits` are those of the path to its end.
 *
 * - An answer with calls and its results belong together: an edit that leaves out one of them leaves out all of them.
 * - A replacement has the same visibility as its target: it keeps the target's agent and metadata, and drops everything
 *   that a provider has signed.
 */
export function applyEdits(
  entries: readonly Entry[],
  edits: ReadonlyMap<string, Edit> = editsOn(entries),
): readonly Entry[] {
  if (edits.size === 0)
    return entries.some(({ type }) => type === "context_edit")
      ? entries.filter(({ type }) => type !== "context_edit")
      : entries;
  const all = [...edits.values()];
  const omits = all.some(({ message }) => message === null);
  // Only an omission or a replaced answer can change which calls and results are seen.
  const hasExchanges = omits || all.some(({ message }) => message?.role === "assistant");
  const answers: ReadonlyMap<Entry, Entry> = hasExchanges ? answersOf(entries) : new Map();
  const omitted = new Set<Entry>();
  for (const entry of omits ? entries : []) {
    if (edits.get(entry.id)?.message !== null) continue;
    omitted.add(entry);
    const answer = answers.get(entry);
    if (answer !== undefined) omitted.add(answer);
  }
  const seen: Entry[] = [];
  for (const entry of entries) {
    if (entry.type === "context_edit" || omitted.has(entry)) continue;
    const answer = answers.get(entry);
    if (answer !== undefined && (omitted.has(answer) || !keepsCall(edits.get(answer.id), entry))) continue;
    const message = edits.get(entry.id)?.message ?? null;
    seen.push(message === null ? entry : replaced(entry, message));
  }
  return seen;
}

/** The entries that belong together with an entry of a path: an answer with calls and its results, in order, or the entry alone. */
export function exchangeOf(path: readonly Entry[], entry: Entry): readonly Entry[] {
  const answers = answersOf(path);
  const answer = answers.get(entry) ?? entry;
  return path.filter((other) => other === answer || answers.get(other) === answer);
}

/** The answer of each result. Some models reuse call ids in every answer, so an id refers to the latest answer with it. */
function answersOf(entries: readonly Entry[]): ReadonlyMap<Entry, Entry> {
  const answers = new Map<Entry, Entry>();
  const byCall = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.type !== "message") continue;
    const { message } = entry;
    if (message.role === "assistant") for (const { id } of message.toolCalls ?? []) byCall.set(id, entry);
    const answer = message.role === "tool" ? byCall.get(message.toolCallId) : undefined;
    if (answer !== undefined) answers.set(entry, answer);
  }
  return answers;
}

/** Whether the edited answer still contains the call of this result. */
function keepsCall(edit: Edit | undefined, result: Entry): boolean {
  const message = edit?.message;
  if (message?.role !== "assistant" || result.type !== "message" || result.message.role !== "tool") return true;
  const { toolCallId } = result.message;
  return message.toolCalls?.some(({ id }) => id === toolCallId) === true;
}

/**
 * An entry with the content of a replacement. A log written by another program may hold a replacement with another
 * role; it has no effect.
 */
function replaced(entry: Entry, message: Message): Entry {
  if (message.role !== roleSeen(entry)) return entry;
  const content = message.content ?? "";
  if (entry.type === "custom_message") return { ...entry, content };
  if (entry.type === "branch_summary") {
    const { summary: _summary, fromId: _from, usage: _usage, cost: _cost, ...stamp } = entry;
    return { ...stamp, type: "custom_message", customType: "branch_summary", content, display: true };
  }
  return entry.type === "message" ? { ...entry, message: replacedMessage(entry.message, message) } : entry;
}

function replacedMessage(target: Message, replacement: Message): Message {
  const { agent, metadata } = target;
  const extras = defined({ agent, metadata });
  if (target.role === "assistant") {
    const { content, toolCalls } = replacement as AssistantMessage;
    const { provider, model, stopReason } = target;
    // A provider's signature covers the whole original answer, so signed parts are dropped.
    const words = Array.isArray(content) ? content.filter(({ type }) => type !== "thinking") : content;
    return { role: "assistant", content: words, ...defined({ toolCalls, provider, model, stopReason }), ...extras };
  }
  const content = replacement.content ?? "";
  if (target.role !== "tool") return { role: target.role, content, ...extras };
  const { toolCallId, name, isError } = target;
  return { role: "tool", toolCallId, name, content, ...defined({ isError }), ...extras };
}
