import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Entry } from "../../../session/log/entry.ts";
import { type Message, textOf } from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type { ForeignBody } from "../foreign-format.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { answerMarks, answerSettings, bodyOfMarks, marksOfBody } from "../own-marks.ts";

/** A row of OpenRath's table. `skein` holds data that OpenRath has no field for; OpenRath ignores it. */
export interface OpenRathRow {
  readonly kind: string;
  readonly payload: JsonObject;
  readonly skein?: JsonObject;
}

/** The body of a row; null if it has no counterpart. */
export function bodyOfRow({ kind, payload, skein }: JsonObject): ForeignBody | null {
  if (!isFields(payload)) return null;
  const content = payload.content === null ? null : textIn(payload.content);
  const marks = isFields(skein) ? skein : {};
  if (content === undefined || (content === null && kind !== "assistant")) return null;
  switch (kind) {
    case "system":
      return { type: "message", message: { role: "system", content: content ?? "" } };
    case "user": {
      const words = content ?? "";
      return bodyOfMarks(marks, words) ?? { type: "message", message: { role: "user", content: words } };
    }
    case "assistant": {
      const toolCalls = callsOf(payload.tool_calls);
      if (toolCalls === null) return null;
      const calls = toolCalls.length === 0 ? {} : { toolCalls };
      return { type: "message", message: { role: "assistant", content, ...calls, ...answerSettings(marks) } };
    }
    case "tool_result": {
      const [toolCallId, name] = [textIn(payload.tool_call_id), textIn(payload.name) ?? ""];
      if (toolCallId === undefined) return null;
      const failed = marks.isError === true ? { isError: true } : {};
      return { type: "message", message: { role: "tool", toolCallId, name, content: content ?? "", ...failed } };
    }
    default:
      return null;
  }
}

/** An entry as a row; null if OpenRath has no counterpart. A row holds only text and calls. */
export function rowOfEntry(entry: Entry, report: WriteReport): OpenRathRow | null {
  const stamp = { id: entry.id, timestamp: entry.timestamp };
  switch (entry.type) {
    case "message":
      return rowOfMessage(entry.message, stamp, report);
    case "custom_message":
    case "branch_summary": {
      const { content, marks } = marksOfBody(entry);
      return { kind: "user", payload: { content: wordsOf(content, report) }, skein: { ...stamp, ...marks } };
    }
    case "compaction":
      return { kind: "user", payload: { content: entry.summary } };
    default:
      return null;
  }
}

/** Parses the token counts of OpenRath; undefined if the value is not an object. */
export function usageOfOpenRath(value: JsonValue | undefined): Usage | undefined {
  if (!isFields(value)) return undefined;
  const [inputTokens, outputTokens, totalTokens] = [
    value.prompt_tokens,
    value.completion_tokens,
    value.total_tokens,
  ].map((count) => (typeof count === "number" && count >= 0 ? count : 0)) as [number, number, number];
  return { inputTokens, outputTokens, totalTokens };
}

function rowOfMessage(message: Message, stamp: JsonObject, report: WriteReport): OpenRathRow {
  const content = message.content === null ? null : wordsOf(message.content, report);
  if (message.role === "tool") {
    const payload = { tool_call_id: message.toolCallId, name: message.name, content: content ?? "" };
    return {
      kind: "tool_result",
      payload,
      skein: { ...stamp, ...(message.isError === true ? { isError: true } : {}) },
    };
  }
  if (message.role !== "assistant") return { kind: message.role, payload: { content: content ?? "" }, skein: stamp };
  const calls = message.toolCalls?.map(({ id, name, arguments: text }) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  }));
  return {
    kind: "assistant",
    payload: { content, tool_calls: calls ?? null },
    skein: { ...stamp, ...answerMarks(message) },
  };
}

function wordsOf(content: NonNullable<Message["content"]>, report: WriteReport): string {
  if (typeof content !== "string")
    for (const part of content) if (part.type !== "text") report.omit(`${part.type} part`);
  return textOf(content);
}

function callsOf(value: JsonValue | undefined): { id: string; name: string; arguments: string }[] | null {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) return null;
  const calls = (value as readonly JsonValue[]).map((call) => {
    const made = isFields(call) && isFields(call.function) ? call.function : {};
    const [id, name] = [isFields(call) ? textIn(call.id) : undefined, textIn(made.name)];
    const text = textIn(made.arguments);
    return id === undefined || name === undefined || text === undefined ? null : { id, name, arguments: text };
  });
  return calls.every((call) => call !== null) ? calls : null;
}
