import type { AgentInputItem } from "@openai/agents";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { Content, ContentPart, Message } from "../../session/message.ts";

/** The `customType` of an entry with an item that is no turn, such as a reasoning item. */
const ITEM = "openai-agents.item";

/** The field of a turn's metadata with what its item has beside the text. */
const REST = "openaiAgents";

/** An item as an entry: what a person, a model or a function said is a turn, anything else data on the path. */
export function draftOf(item: AgentInputItem): EntryDraft {
  const fields = item as unknown as JsonObject;
  const message = callTurn(fields) ?? textTurn(fields);
  return message === null ? { type: "custom", customType: ITEM, data: fields } : { type: "message", message };
}

/** The item that an entry was made of; null for an entry that is none. */
export function itemOf(entry: Entry): AgentInputItem | null {
  if (entry.type === "custom") return entry.customType === ITEM ? copyOf(entry.data as JsonObject) : null;
  if (entry.type !== "message") return null;
  const { message } = entry;
  const rest = message.metadata?.[REST] as JsonObject | undefined;
  if (rest === undefined) return null;
  // What the turn itself says was stored once.
  if (message.role === "tool") return copyOf({ ...rest, output: withText(rest["output"], message.content) });
  if (rest["type"] === "function_call" && message.role === "assistant")
    return copyOf({ ...rest, arguments: message.toolCalls?.[0]?.arguments ?? "" });
  return copyOf({ ...rest, content: withText(rest["content"], message.content ?? "") });
}

/** Content without its texts, together with them again. */
function withText(rest: JsonValue | undefined, content: Content): JsonValue {
  if (rest === undefined) return content as JsonValue;
  const texts = typeof content === "string" ? [content] : content.map((part) => ("text" in part ? part.text : ""));
  const fill = (part: JsonValue): JsonValue =>
    isText(part) && part["text"] === undefined ? { ...part, text: texts.shift() ?? "" } : part;
  return Array.isArray(rest) ? rest.map(fill) : fill(rest);
}

/** The turn of a message; null for other items. */
function textTurn(item: JsonObject): Message | null {
  const { role, content } = item;
  if (role !== "user" && role !== "assistant" && role !== "system") return null;
  if (content === undefined) return null;
  const { rest, said } = split(content);
  const { content: _content, ...fields } = item;
  const kept = rest === undefined ? fields : { ...fields, content: rest };
  return { role, content: said, metadata: { [REST]: kept } };
}

/** What content says, and what is left of it without that. */
function split(content: JsonValue | undefined): { readonly said: Content; readonly rest?: JsonValue } {
  if (typeof content === "string") return { said: content };
  const said: ContentPart[] = [];
  const take = (part: JsonValue): JsonValue => {
    if (!isText(part) || typeof part["text"] !== "string") return part;
    const { text, ...others } = part;
    said.push({ type: "text", text });
    return others;
  };
  return { rest: Array.isArray(content) ? content.map(take) : take(content ?? null), said };
}

function isText(part: JsonValue): part is JsonObject {
  const type = typeof part === "object" && part !== null ? (part as JsonObject)["type"] : undefined;
  return type === "input_text" || type === "output_text" || type === "text";
}

/** The turn of a function's call or result; null for other items. */
function callTurn(item: JsonObject): Message | null {
  const { type, callId, name } = item;
  if (typeof callId !== "string" || callId === "" || typeof name !== "string" || name === "") return null;
  if (type === "function_call" && typeof item["arguments"] === "string") {
    const { arguments: given, ...rest } = item;
    const toolCalls = [{ id: callId, name, arguments: given as string }];
    return { role: "assistant", content: null, toolCalls, metadata: { [REST]: rest } };
  }
  if (type !== "function_call_result" || item["output"] === undefined) return null;
  const { output, ...others } = item;
  const { said, rest } = split(output);
  const metadata = { [REST]: rest === undefined ? others : { ...others, output: rest } };
  return { role: "tool", toolCallId: callId, name, content: said, metadata };
}

/** Entries are frozen; whoever gets an item may change it. */
function copyOf(item: JsonObject): AgentInputItem {
  return structuredClone(item) as unknown as AgentInputItem;
}
