import { dropEnd } from "../internal/trim-text.ts";
import { cutText } from "../internal/cut-text.ts";
import { nextSlice } from "../internal/long-work.ts";
import type { Entry, EntryOf } from "../session/log/entry.ts";
import type { Content, ContentPart, Message, ToolCall } from "../session/message.ts";
import type { Usage } from "../session/usage.ts";

/** One node of a path, prepared for display. */
export interface TranscriptItem {
  readonly kind: "system" | "user" | "assistant" | "tool" | "summary" | "note";
  /** The author, or what happened. */
  readonly title: string;
  /** Shown in small print: the model, tokens and cost, the stop reason. */
  readonly details: readonly string[];
  readonly blocks: readonly TranscriptBlock[];
}

/** A part of a node's content. */
export type TranscriptBlock =
  | { readonly type: "text"; readonly text: string }
  /** Collapsed until the reader opens it; `language` is the info string of the code fence. */
  | { readonly type: "folded"; readonly title: string; readonly text: string; readonly language: "json" | "text" }
  | Extract<ContentPart, { readonly type: "image" | "file" }>;

/** A longer JSON text is not indented. */
const INDENTED_CHARACTERS_MAX = 1024 * 1024;

/** A longer text is not parsed as Markdown: parsing would block the event loop for too long. */
const FORMATTED_CHARACTERS_MAX = 200_000;

/** How many characters of blocks are written before yielding to the event loop. */
const SLICE_CHARACTERS = 128 * 1024;

/** Renders blocks one at a time and yields to the event loop, so that a message of many parts does not block it. */
export async function* renderBlocks(
  blocks: readonly TranscriptBlock[],
  render: (block: TranscriptBlock) => string,
): AsyncGenerator<string, void, undefined> {
  let characters = 0;
  for (const block of blocks) {
    characters += "text" in block ? block.text.length : "data" in block ? block.data.length : 0;
    if (characters > SLICE_CHARACTERS) {
      await nextSlice();
      characters = 0;
    }
    yield render(block);
  }
}

/** The item for an entry; null if nothing is to be shown. */
export function itemOf(entry: Entry, undone = false): TranscriptItem | null {
  switch (entry.type) {
    case "message":
      return messageItem(entry.message);
    case "compaction":
      return compactionItem(entry, undone);
    case "branch_summary":
      return summaryItem("Summary of another branch", entry, [], entry.summary);
    case "custom_message":
      if (!entry.display) return null;
      return { kind: "note", title: entry.customType, details: [], blocks: blocksOf(entry.content) };
    case "model_change":
      return note(`Model: ${entry.provider}/${entry.modelId}`);
    case "thinking_level_change":
      return note(`Thinking: ${entry.thinkingLevel}`);
    case "variables":
      return variablesItem(entry);
    case "lost":
      return note(`An entry could not be read: ${entry.reason}`);
    default:
      return null;
  }
}

/** Tokens and cost as texts; empty if they are unknown. */
export function spendingOf(usage: Usage | undefined, cost: number | undefined): string[] {
  const tokens = usage === undefined ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`];
  return cost === undefined || cost === 0 ? tokens : [...tokens, formatCost(cost)];
}

/** The beginning of a text, on one line. */
export function openingOf(text: string, charactersMax: number): string {
  const line = cutText(text.trimStart(), 0, charactersMax * 4)
    .replace(/\s+/g, " ")
    .trimEnd();
  const characters = [...line];
  return characters.length <= charactersMax ? line : `${characters.slice(0, charactersMax - 1).join("")}…`;
}

/** Indents a JSON text; returns other texts unchanged. */
function indentJson(text: string): string {
  if (text.length > INDENTED_CHARACTERS_MAX) return text;
  try {
    // Also escapes the control characters and bidirectional overrides that `JSON.stringify` leaves unescaped.
    return JSON.stringify(JSON.parse(text), null, 2).replace(
      /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
      (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  } catch {
    return text;
  }
}

function messageItem(message: Message): TranscriptItem {
  switch (message.role) {
    case "assistant":
      return {
        kind: "assistant",
        title: titled("Assistant", message.agent),
        details: [
          ...(message.model === undefined ? [] : [message.model]),
          ...spendingOf(message.usage, message.cost),
          ...(message.stopReason === undefined || ["stop", "tool_calls"].includes(message.stopReason)
            ? []
            : [`ended: ${message.stopReason}`]),
        ],
        blocks: [...blocksOf(message.content), ...(message.toolCalls ?? []).map(callBlock)],
      };
    case "tool":
      return {
        kind: "tool",
        title: titled("Tool", message.name),
        details: message.isError === true ? ["failed"] : [],
        blocks: blocksOf(message.content).map((block) =>
          block.type === "text"
            ? folded(`${message.isError === true ? "Error" : "Result"} of ${message.name}`, block.text)
            : block,
        ),
      };
    default:
      return {
        kind: message.role,
        title: titled(message.role === "user" ? "User" : "System", message.agent),
        details: [],
        blocks: blocksOf(message.content),
      };
  }
}

function blocksOf(content: Content | null): TranscriptBlock[] {
  if (content === null || content === "") return [];
  if (typeof content === "string") return [textBlock(content)];
  return content.map((part) => {
    if (part.type === "text") return textBlock(part.text);
    return part.type === "thinking" ? folded("Thinking", part.text) : part;
  });
}

function textBlock(text: string): TranscriptBlock {
  return text.length > FORMATTED_CHARACTERS_MAX ? folded("A long text", text) : { type: "text", text };
}

function callBlock({ name, arguments: text }: ToolCall): TranscriptBlock {
  return { type: "folded", title: `Call of ${name}`, text: indentJson(text), language: "json" };
}

function compactionItem(entry: EntryOf<"compaction">, undone: boolean): TranscriptItem {
  const details = [`${entry.tokensBefore} tokens before`, ...(undone ? ["undone"] : [])];
  return summaryItem("Compaction: a summary of what came before", entry, details, entry.summary);
}

function summaryItem(
  title: string,
  { usage, cost }: { readonly usage?: Usage; readonly cost?: number },
  details: readonly string[],
  summary: string,
): TranscriptItem {
  return {
    kind: "summary",
    title,
    details: [...details, ...spendingOf(usage, cost)],
    blocks: summary === "" ? [] : [textBlock(summary)],
  };
}

function variablesItem({ set, unset, systemPrompt }: EntryOf<"variables">): TranscriptItem {
  const blocks = typeof systemPrompt === "string" ? [folded("System prompt", systemPrompt)] : [];
  const changed = Object.keys(set).length + unset.length;
  return {
    ...note(changed === 0 ? "Settings" : `Variables: ${Object.keys(set).length} set, ${unset.length} unset`),
    blocks,
  };
}

function note(title: string): TranscriptItem {
  return { kind: "note", title, details: [], blocks: [] };
}

function folded(title: string, text: string): TranscriptBlock {
  return { type: "folded", title, text, language: "text" };
}

function titled(role: string, name: string | undefined): string {
  return name === undefined || name === "" ? role : `${role}: ${name}`;
}

function formatCost(cost: number): string {
  return `$${cost >= 0.01 ? cost.toFixed(2) : dropEnd(cost.toFixed(6), /0/)}`;
}
