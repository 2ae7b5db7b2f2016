import type { JsonObject } from "../../internal/json.ts";
import type { NodeBody } from "../../session/log/entry.ts";
import type { AssistantMessage, Content } from "../../session/message.ts";

/** Entries that are part of the context and become user messages in formats without a counterpart. */
export type MarkedBody = Extract<NodeBody, { type: "custom_message" | "branch_summary" }>;

const SPOKEN_FIELDS = {
  custom_message: ["type", "customType", "display", "details"],
  branch_summary: ["type", "fromId", "details"],
} as const;

const ANSWER_FIELDS = ["provider", "model", "usage", "cost", "stopReason"] as const;

/** The content of the user message that stands for the entry, and the marks from which an import restores the entry. */
export function marksOfBody(entry: MarkedBody): { readonly content: Content; readonly marks: JsonObject } {
  const content = entry.type === "custom_message" ? entry.content : entry.summary;
  return { content, marks: picked(entry as unknown as JsonObject, SPOKEN_FIELDS[entry.type]) };
}

/** Restores the entry that a user message stands for from its marks; null if the marks name no such entry. */
export function bodyOfMarks(marks: JsonObject, content: Content): MarkedBody | null {
  if (marks.type !== "custom_message" && marks.type !== "branch_summary") return null;
  const said = marks.type === "custom_message" ? { content } : { summary: content };
  return { ...picked(marks, SPOKEN_FIELDS[marks.type]), ...said } as unknown as MarkedBody;
}

/** The marks of an answer, for formats that do not record its model or its cost. */
export function answerMarks(message: AssistantMessage): JsonObject {
  return picked(message as unknown as JsonObject, ANSWER_FIELDS);
}

/** The fields of an answer in its marks; unknown fields are ignored. */
export function answerSettings(marks: JsonObject): Partial<AssistantMessage> {
  return picked(marks, ANSWER_FIELDS) as Partial<AssistantMessage>;
}

/** The marks of a compaction, for formats that record only the summary. */
export function compactionMarks(entry: Extract<NodeBody, { type: "compaction" }>): JsonObject {
  const fields = ["firstKeptEntryId", "tokensBefore", "details", "usage", "cost"];
  return picked(entry as unknown as JsonObject, fields);
}

/** Usage and cost in the marks of a compaction. */
export function spendingIn(marks: JsonObject): Pick<AssistantMessage, "usage" | "cost"> {
  return picked(marks, ["usage", "cost"]) as Pick<AssistantMessage, "usage" | "cost">;
}

function picked(fields: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => names.includes(name) && value !== undefined),
  );
}
