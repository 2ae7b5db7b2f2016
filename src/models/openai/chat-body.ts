import type { ModelRequest } from "../../agent/model/model.ts";
import {
  type AssistantMessage,
  type Content,
  type Message,
  partsOf,
  textOf,
  type ToolMessage,
} from "../../session/message.ts";
import { type DataPart, dataUrl, namedText, unreadable } from "../wire/content.ts";
import { fieldsOf } from "../wire/json-reader.ts";
import { isFrom } from "../wire/wire-model.ts";
import { cacheFields, isOpenAIHost, markItems, type OpenAICache, usesCache } from "./cache-fields.ts";
import { outputFormat } from "./output-format.ts";
import { effortOf } from "./reasoning.ts";
import { inlineAttachment } from "../../session/blob.ts";

type Body = Readonly<Record<string, unknown>>;

/** Converts a request to the body of the Chat Completions API. */
export function chatBody(id: string, request: ModelRequest, baseURL: string | undefined, cache: OpenAICache): Body {
  const { tools = [], toolChoice, temperature, maxOutputTokens, stop = [], output } = request;
  const effort = effortOf(request.thinkingLevel);
  const messages = chatMessages(id, request.messages);
  const cached = usesCache(cache, baseURL) ? cache : null;
  return {
    model: id,
    messages: cached === null ? messages : markItems(id, messages, "text"),
    ...(cached && cacheFields(id, request, cached)),
    ...(tools.length === 0 ? {} : { tools: tools.map((schema) => ({ type: "function", function: schema })) }),
    ...(tools.length === 0 || toolChoice === undefined ? {} : { tool_choice: chatToolChoice(toolChoice) }),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { [limitField(baseURL)]: maxOutputTokens }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(output && { response_format: { type: "json_schema", json_schema: outputFormat(output) } }),
  };
}

/** The field for the token limit: OpenAI's newer models refuse the old name, other endpoints do not know the new one. */
function limitField(baseURL: string | undefined): "max_completion_tokens" | "max_tokens" {
  return isOpenAIHost(baseURL) ? "max_completion_tokens" : "max_tokens";
}

function chatToolChoice(choice: NonNullable<ModelRequest["toolChoice"]>): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function chatMessages(id: string, messages: readonly Message[]): Body[] {
  const out: Body[] = [];
  let shown: Body[] = [];
  const flush = (): void => {
    if (shown.length > 0) out.push({ role: "user", content: shown });
    shown = [];
  };
  for (const message of messages) {
    // Tool results of a round must be consecutive, so their images follow after the last one.
    if (message.role !== "tool") flush();
    if (message.role === "assistant") out.push(chatAssistant(id, message));
    else if (message.role === "tool") {
      const { text, images } = toolText(message);
      out.push({ role: "tool", tool_call_id: message.toolCallId, content: text });
      if (images.length > 0)
        shown.push({ type: "text", text: `Shown by tool call ${message.toolCallId}:` }, ...images.map(chatPart));
    } else {
      const isSystem = message.role === "system";
      out.push({ role: message.role, content: isSystem ? textOf(message.content) : chatContent(message.content) });
    }
  }
  flush();
  return out;
}

function chatAssistant(id: string, message: AssistantMessage): Body {
  const calls = message.toolCalls ?? [];
  const text = textOf(message.content);
  const data = isFrom(message, "openai") ? fieldsOf(message.providerData) : {};
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(data["api"] === "chat" && data["model"] === id ? fieldsOf(data["message"]) : {}),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.arguments || "{}" },
          })),
        }),
  };
}

function chatContent(content: Content): unknown {
  if (typeof content === "string") return content;
  return content.flatMap((part) => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    return part.type === "thinking" ? [] : [chatPart(inlineAttachment(part))];
  });
}

function chatPart(part: DataPart): Body {
  if (part.type === "image") return { type: "image_url", image_url: { url: dataUrl(part) } };
  const text = namedText(part);
  if (text !== undefined) return { type: "text", text };
  return part.mediaType === "application/pdf"
    ? { type: "file", file: { filename: part.name ?? "file.pdf", file_data: dataUrl(part) } }
    : { type: "text", text: unreadable(part) };
}

/** Splits a tool result: this API accepts only text in it, so its images are sent in a separate user message. */
function toolText(message: ToolMessage): { text: string; images: DataPart[] } {
  const images: DataPart[] = [];
  const lines = partsOf(message.content).flatMap((part) => {
    if (part.type === "text") return [part.text];
    if (part.type === "thinking") return [];
    const inline = inlineAttachment(part);
    if (part.type === "file") return [namedText(inline) ?? unreadable(part)];
    images.push(inline);
    return [`[image ${images.length}${part.name === undefined ? "" : `, ${part.name}`}, shown below]`];
  });
  return { text: lines.join("\n"), images };
}
