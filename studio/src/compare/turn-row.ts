import { costOfAnswer, type ShownCost } from "../../../src/models/shown-cost.ts";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { ToolCall } from "../../../src/session/message.ts";
import { spokenText } from "../request/spoken-text.ts";
import { outputOf } from "../transcript/content/call-output.ts";

/** An entry as a comparison shows it. */
export interface TurnRow {
  readonly id: string;
  /** The role, or the kind of entry: `user`, `assistant`, `tool`, `summary`, … */
  readonly kind: string;
  /** The heading. */
  readonly title: string;
  readonly text: string;
  /** Whether the text is Markdown; results of tools are not. */
  readonly isMarkdown: boolean;
  readonly calls: readonly ToolCall[];
  readonly failed: boolean;
  readonly tokens: number;
  readonly cost: ShownCost | null;
}

/** The row of an entry; null for an entry without a text, such as variables. */
export function turnRowOf(entry: Entry): TurnRow | null {
  switch (entry.type) {
    case "message":
      return messageRow(entry.id, entry.message);
    case "compaction":
      return note(entry.id, "compaction", "Compaction", entry.summary);
    case "branch_summary":
      return note(entry.id, "summary", "Summary of a branch", entry.summary);
    case "custom_message":
      return note(entry.id, "note", entry.customType, spokenText(entry.content));
    case "model_change":
      return note(entry.id, "setting", "Model", `${entry.provider}/${entry.modelId}`);
    case "thinking_level_change":
      return note(entry.id, "setting", "Thinking", entry.thinkingLevel);
    case "lost":
      return note(entry.id, "note", "Lost entry", entry.reason);
    default:
      return null;
  }
}

const ROLES = { system: "System", user: "User", assistant: "Assistant", tool: "Tool" } as const;

function messageRow(id: string, message: Extract<Entry, { type: "message" }>["message"]): TurnRow {
  const assistant = message.role === "assistant" ? message : null;
  const speaker = message.role === "tool" ? `Tool ${message.name}` : (ROLES[message.role] ?? message.role);
  const isTool = message.role === "tool";
  const text = spokenText(message.content);
  return {
    id,
    kind: message.role,
    title: message.agent === undefined ? speaker : `${speaker} · ${message.agent}`,
    text: isTool ? outputText(text, { name: message.name, failed: message.isError === true }) : text,
    isMarkdown: !isTool,
    calls: assistant?.toolCalls ?? [],
    failed: (message.role === "tool" && message.isError === true) || assistant?.stopReason === "error",
    tokens: assistant?.usage?.totalTokens ?? 0,
    cost: costOfAnswer(message),
  };
}

function note(id: string, kind: string, title: string, text: string): TurnRow {
  return { id, kind, title, text, isMarkdown: kind !== "setting", calls: [], failed: false, tokens: 0, cost: null };
}

/** The result of a tool as the text that a person reads, not as JSON. */
function outputText(text: string, { name, failed }: { readonly name: string; readonly failed: boolean }): string {
  const output = outputOf({ name, arguments: "{}" }, { text, failed });
  if (output === null) return "";
  switch (output.kind) {
    case "terminal":
      return [output.stdout.trimEnd(), output.stderr.trimEnd()].filter((each) => each !== "").join("\n");
    case "table":
      return output.rows.map((row) => row.filter((cell) => cell !== "").join("  ")).join("\n");
    case "text":
      return output.text;
    default:
      return text;
  }
}
