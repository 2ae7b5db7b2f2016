import type { EntryDraft } from "../../session/log/entry.ts";
import type { AssistantMessage } from "../../session/message.ts";

type Stamp = Pick<EntryDraft, "id" | "timestamp" | "parentId">;

/** A user's message. */
export function user(text: string, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "message", message: { role: "user", content: text } };
}

/** A model's answer. */
export function assistant(text: string, extras: Partial<AssistantMessage> = {}, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "message", message: { role: "assistant", content: text, ...extras } };
}

/** A model's answer with this many input and output tokens each, and a hundredth of it as the cost. */
export function spending(tokens: number, stamp: Stamp = {}): EntryDraft {
  const usage = { inputTokens: tokens, outputTokens: tokens, totalTokens: tokens * 2 };
  return assistant("answer", { provider: "acme", model: "one", usage, cost: tokens / 100 }, stamp);
}

/** Moves the leaf. */
export function leaf(targetId: string | null, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "leaf", targetId };
}

/** Labels an entry. */
export function label(targetId: string, text: string | null, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "label", targetId, label: text };
}

/** Names the session. */
export function name(text: string, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "session_info", name: text };
}

/** Changes the session's status. */
export function status(to: "active" | "suspended" | "closed" | "expired", stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "status", status: to };
}

/** Sets variables. */
export function variables(
  set: Record<string, string | number>,
  unset: readonly string[] = [],
  stamp: Stamp = {},
): EntryDraft {
  return { ...stamp, type: "variables", set, unset };
}

/** Replaces the entries before an entry with a summary. */
export function compaction(firstKeptEntryId: string, stamp: Stamp = {}): EntryDraft {
  return { ...stamp, type: "compaction", summary: "before", firstKeptEntryId, tokensBefore: 100 };
}
