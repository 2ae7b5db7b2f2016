import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Entry, NodeBody } from "../../../session/log/entry.ts";
import type { Usage } from "../../../session/usage.ts";
import type { ForeignBody } from "../foreign-format.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { contentOfPi, messageOfPi, piOfContent, piOfMessage, piOfUsage, usageOfPi } from "./pi-message.ts";

/** The custom type of messages about commands that the user ran; pi sends these to the model. */
const BASH = "pi.bash";

/** The types of pi's `custom` entries for data that pi has no type for. */
const OWN_TYPES = { system: "skein.system", variables: "skein.variables" } as const;

/** The body of a pi entry; null if it has no counterpart. `id` is the id of the entry. */
export function bodyOfPi(value: JsonObject, id: string): ForeignBody | null {
  switch (value.type) {
    case "message":
      return bodyOfMessage(value.message);
    case "compaction":
      return {
        type: "compaction",
        summary: textIn(value.summary) ?? "",
        // A compaction that names no entry keeps no earlier entry.
        firstKeptEntryId: textIn(value.firstKeptEntryId) ?? id,
        tokensBefore: typeof value.tokensBefore === "number" ? value.tokensBefore : 0,
        ...(value.details === undefined ? {} : { details: value.details }),
        ...usageOfPi(value.usage),
      };
    case "branch_summary":
      return {
        type: "branch_summary",
        summary: textIn(value.summary) ?? "",
        fromId: value.fromId === "root" ? null : (textIn(value.fromId) ?? null),
        ...(value.details === undefined ? {} : { details: value.details }),
        ...usageOfPi(value.usage),
      };
    case "custom_message":
      return bodyOfCustomMessage(value);
    case "custom":
      return bodyOfCustom(value);
    case "model_change":
      return { type: "model_change", provider: textIn(value.provider) ?? "", modelId: textIn(value.modelId) ?? "" };
    case "thinking_level_change":
      return { type: "thinking_level_change", thinkingLevel: textIn(value.thinkingLevel) ?? "" };
    case "session_info":
      return { type: "session_info", name: textIn(value.name) ?? "" };
    default:
      return null;
  }
}

/** An entry in pi's form, without id, parent and timestamp; null if pi has no counterpart. */
export function piOfEntry(entry: Entry, report: WriteReport): JsonObject | null {
  switch (entry.type) {
    case "message": {
      if (entry.message.role === "system")
        return { type: "custom", customType: OWN_TYPES.system, data: { ...entry.message } as unknown as JsonObject };
      const message = piOfMessage(entry.message, Date.parse(entry.timestamp), report);
      return message === null ? null : { type: "message", message };
    }
    case "compaction": {
      const { summary, firstKeptEntryId, tokensBefore, details } = entry;
      return {
        type: "compaction",
        summary,
        firstKeptEntryId,
        tokensBefore,
        ...detailsOf(details),
        ...spendingOf(entry),
      };
    }
    case "branch_summary": {
      const { summary, fromId, details } = entry;
      return { type: "branch_summary", fromId: fromId ?? "root", summary, ...detailsOf(details), ...spendingOf(entry) };
    }
    case "custom_message":
      return piOfCustomMessage(entry, report);
    case "custom":
      return {
        type: "custom",
        customType: entry.customType,
        ...(entry.data === undefined ? {} : { data: entry.data }),
      };
    case "variables": {
      const { set, unset, systemPrompt, activeTools, activeSkills } = entry;
      const data = { set, unset, systemPrompt, activeTools, activeSkills };
      return { type: "custom", customType: OWN_TYPES.variables, data: JSON.parse(JSON.stringify(data)) as JsonObject };
    }
    case "model_change":
      return { type: "model_change", provider: entry.provider, modelId: entry.modelId };
    case "thinking_level_change":
      return { type: "thinking_level_change", thinkingLevel: entry.thinkingLevel };
    case "label":
      return { type: "label", targetId: entry.targetId, ...(entry.label === null ? {} : { label: entry.label }) };
    case "session_info":
      return { type: "session_info", name: entry.name };
    default:
      return null;
  }
}

function bodyOfMessage(value: JsonValue | undefined): NodeBody | null {
  const message = messageOfPi(value);
  if (message !== null) return { type: "message", message };
  if (!isFields(value)) return null;
  if (value.role === "custom") return bodyOfCustomMessage(value);
  if (value.role !== "bashExecution" || value.excludeFromContext === true) return null;
  return { type: "custom_message", customType: BASH, content: textOfBash(value), display: true, details: value };
}

function bodyOfCustomMessage(value: JsonObject): NodeBody | null {
  const content = contentOfPi(value.content);
  const customType = textIn(value.customType);
  if (content === null || customType === undefined) return null;
  const details = value.details === undefined ? {} : { details: value.details };
  return { type: "custom_message", customType, content, display: value.display === true, ...details };
}

function bodyOfCustom(value: JsonObject): NodeBody | null {
  const customType = textIn(value.customType);
  if (customType === undefined) return null;
  const { data } = value;
  if (customType === OWN_TYPES.variables && isFields(data)) {
    const { set, unset, systemPrompt, activeTools, activeSkills } = data;
    const said = Object.entries({ set, unset, systemPrompt, activeTools, activeSkills });
    const given = Object.fromEntries(said.filter(([, value]) => value !== undefined));
    return { type: "variables", ...given } as unknown as NodeBody;
  }
  if (customType === OWN_TYPES.system && isFields(data) && data.role === "system")
    return { type: "message", message: data } as unknown as NodeBody;
  return { type: "custom", customType, ...(data === undefined ? {} : { data }) };
}

function piOfCustomMessage(entry: Extract<Entry, { type: "custom_message" }>, report: WriteReport): JsonObject {
  const { customType, display, details } = entry;
  if (customType === BASH && isFields(details)) return { type: "message", message: details };
  return {
    type: "custom_message",
    customType,
    content: piOfContent(entry.content, report),
    display,
    ...detailsOf(details),
  };
}

function spendingOf({ usage, cost }: { readonly usage?: Usage; readonly cost?: number }): JsonObject {
  return usage === undefined ? {} : { usage: piOfUsage(usage, cost) };
}

function detailsOf(details: JsonValue | undefined): { readonly details?: JsonValue } {
  return details === undefined ? {} : { details };
}

/** The text that pi sends to a model about a command that the user ran. */
function textOfBash({ command, output, cancelled, exitCode, truncated, fullOutputPath }: JsonObject): string {
  const said = textIn(output) ?? "";
  const lines = [`Ran \`${textIn(command) ?? ""}\``, said === "" ? "(no output)" : `\`\`\`\n${said}\n\`\`\``];
  if (cancelled === true) lines.push("", "(command cancelled)");
  else if (typeof exitCode === "number" && exitCode !== 0) lines.push("", `Command exited with code ${exitCode}`);
  if (truncated === true && typeof fullOutputPath === "string")
    lines.push("", `[Output truncated. Full output: ${fullOutputPath}]`);
  return lines.join("\n");
}
