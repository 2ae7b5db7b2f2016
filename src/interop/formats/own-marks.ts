import type { JsonObject } from "../../internal/json.ts";
import type { NodeBody } from "../../session/log/entry.ts";
import type { AssistantMessage, Content } from "../../session/message.ts";

/** Entries that a model is told about, and that other programs know only as words of the user. */
export type SpokenBody = Extract<NodeBody, { type: "custom_message" | "branch_summary" }>;

const SPOKEN_FIELDS = {
  custom_message: ["type", "customType", "display", "details"],
  branch_summary: ["type", "fromId", "details"],
} as const;

const ANSWER_FIELDS = ["provider", "model", "usage", "cost", "stopReason"] as const;

/** What is said by an entry that becomes words of the user, and what is noted beside them so that it comes back. */
export function spokenMarks(entry: SpokenBody): { readonly content: Content; readonly marks: JsonObject } {
  const content = entry.type === "custom_message" ? entry.content : entry.summary;
  return { content, marks: picked(entry as unknown as JsonObject, SPOKEN_FIELDS[entry.type]) };
}

/** The entry that words of the user were, by what was noted beside them; null where that says nothing of the kind. */
export function spokenBody(marks: JsonObject, content: Content): SpokenBody | null {
  if (marks.type !== "custom_message" && marks.type !== "branch_summary") return null;
  const said = marks.type === "custom_message" ? { content } : { summary: content };
  return { ...picked(marks, SPOKEN_FIELDS[marks.type]), ...said } as unknown as SpokenBody;
}

/** What is noted beside an answer of which the other program does not say who gave it, or at what cost. */
export function answerMarks(message: AssistantMessage): JsonObject {
  return picked(message as unknown as JsonObject, ANSWER_FIELDS);
}

/** What was noted beside an answer; nothing else that a file may say. */
export function answerSettings(marks: JsonObject): Partial<AssistantMessage> {
  return picked(marks, ANSWER_FIELDS) as Partial<AssistantMessage>;
}

/** What is noted beside a compaction of which the other program knows the summary alone. */
export function compactionMarks(entry: Extract<NodeBody, { type: "compaction" }>): JsonObject {
  const fields = ["firstKeptEntryId", "tokensBefore", "details", "usage", "cost"];
  return picked(entry as unknown as JsonObject, fields);
}

/** What was noted beside a compaction about its cost. */
export function spendingIn(marks: JsonObject): Pick<AssistantMessage, "usage" | "cost"> {
  return picked(marks, ["usage", "cost"]) as Pick<AssistantMessage, "usage" | "cost">;
}

function picked(fields: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => names.includes(name) && value !== undefined),
  );
}
