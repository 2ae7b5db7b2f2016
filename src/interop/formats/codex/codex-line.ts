import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Entry } from "../../../session/log/entry.ts";
import { type AssistantMessage, type Message, partsOf } from "../../../session/message.ts";
import { addUsage, NO_USAGE, type Usage } from "../../../session/usage.ts";
import type { WriteReport } from "../foreign-report.ts";
import { answerMarks, compactionMarks, marksOfBody } from "../own-marks.ts";
import { codexOfUsage, itemOfCall, itemOfInput, itemOfOutput, itemOfPart } from "./codex-item.ts";

/** A line of a rollout without its timestamp. `skein` holds data that Codex has no field for; Codex ignores it. */
export interface CodexLine {
  readonly type: "response_item" | "event_msg" | "turn_context" | "compacted";
  readonly payload: JsonObject;
  readonly skein?: JsonObject;
}

/** State while a rollout is written: what its lines need besides their entry. */
export class CodexWriting {
  readonly cwd: string;
  readonly foreignId: string;
  readonly report: WriteReport;
  /** The total usage so far. */
  spent: Usage = NO_USAGE;
  model = "unknown";

  constructor(cwd: string, foreignId: string, report: WriteReport) {
    this.cwd = cwd;
    this.foreignId = foreignId;
    this.report = report;
  }
}

/** The lines for an entry that did not come from Codex; null if the format has no counterpart. */
export function linesOfEntry(entry: Entry, writing: CodexWriting): CodexLine[] | null {
  const { report } = writing;
  const { id } = entry;
  switch (entry.type) {
    case "message":
      if (entry.message.role === "assistant") return linesOfAnswer(id, entry.message, writing);
      return [{ ...item(itemOfMessage(entry.message, report)), skein: { id, ...marksOf(entry.message) } }];
    case "custom_message":
    case "branch_summary": {
      const { content, marks } = marksOfBody(entry);
      return [{ ...item(itemOfInput("user", content, report)), skein: { id, ...marks } }];
    }
    case "model_change":
      writing.model = entry.modelId;
      return [{ ...settings(writing), skein: { id, type: entry.type, provider: entry.provider } }];
    case "thinking_level_change": {
      const effort = entry.thinkingLevel === "off" ? "none" : entry.thinkingLevel;
      return [{ ...settings(writing, { effort }), skein: { id, type: entry.type } }];
    }
    case "session_info": {
      const payload = { type: "thread_name_updated", thread_id: writing.foreignId, thread_name: entry.name };
      return [{ type: "event_msg", payload, skein: { id } }];
    }
    default:
      return null;
  }
}

/** The line for a compaction that did not come from Codex, with the items that it keeps. */
export function lineOfCompaction(
  entry: Extract<Entry, { type: "compaction" }>,
  kept: readonly JsonObject[],
  report: WriteReport,
): CodexLine {
  const { id, summary } = entry;
  const replacement_history = [itemOfInput("user", summary, report), ...kept] as unknown as JsonValue;
  const skein = { id, ...compactionMarks(entry) };
  return { type: "compacted", payload: { message: summary, replacement_history }, skein };
}

/** The items of a message in their simplest form. The stored patches turn them into the items that Codex wrote. */
export function itemsOfMessage(message: Message, report: WriteReport): JsonObject[] {
  if (message.role !== "assistant") return [itemOfMessage(message, report)];
  return [
    ...partsOf(message.content).map((part) => itemOfPart(part, report)),
    ...(message.toolCalls ?? []).map(itemOfCall),
  ];
}

function linesOfAnswer(id: string, message: AssistantMessage, writing: CodexWriting): CodexLine[] | null {
  const parts = partsOf(message.content).map((part): CodexLine => {
    if (part.type !== "thinking" || (message.provider === "openai" && part.signature !== undefined))
      return item(itemOfPart(part, writing.report));
    // Codex would send an item to its model, and a model rejects the thinking of another provider.
    const { text, signature } = part;
    const skein = { thinking: true, ...(signature === undefined ? {} : { signature }) };
    return { type: "event_msg", payload: { type: "agent_reasoning", text }, skein };
  });
  const [first, ...others] = [...parts, ...(message.toolCalls ?? []).map((call) => item(itemOfCall(call)))];
  if (first === undefined) return null;
  // Usage is written as a separate line.
  const { usage: _, ...noted } = answerMarks(message);
  const usage = message.usage === undefined ? [] : [lineOfUsage(message.usage, writing)];
  return [{ ...first, skein: { ...first.skein, id, ...noted } }, ...others, ...usage];
}

function itemOfMessage(message: Exclude<Message, AssistantMessage>, report: WriteReport): JsonObject {
  if (message.role === "tool") return itemOfOutput(message, report);
  return itemOfInput(message.role === "user" ? "user" : "developer", message.content, report);
}

function lineOfUsage(usage: Usage, writing: CodexWriting): CodexLine {
  writing.spent = addUsage(writing.spent, usage);
  const info = {
    total_token_usage: codexOfUsage(writing.spent),
    last_token_usage: codexOfUsage(usage),
    model_context_window: null,
  };
  return { type: "event_msg", payload: { type: "token_count", info, rate_limits: null } };
}

/** The settings line of a turn, with the strictest policies of Codex. */
function settings({ cwd, model }: CodexWriting, more: JsonObject = {}): CodexLine {
  const policy = { approval_policy: "on-request", sandbox_policy: { type: "read-only" } };
  return { type: "turn_context", payload: { cwd, ...policy, model, ...more, summary: "auto" } };
}

function marksOf(message: Exclude<Message, AssistantMessage>): JsonObject {
  if (message.role !== "tool") return message.role === "system" ? { role: "system" } : {};
  return { name: message.name, ...(message.isError === true ? { isError: true } : {}) };
}

function item(payload: JsonObject): CodexLine {
  return { type: "response_item", payload };
}
