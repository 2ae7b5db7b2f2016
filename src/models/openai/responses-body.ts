import type { ModelRequest } from "../../agent/model/model.ts";
import { SessionError } from "../../session/errors.ts";
import { type AssistantMessage, type Content, type Message, partsOf, textOf } from "../../session/message.ts";
import { callsAre, type DataPart, dataUrl, namedText } from "../wire/content.ts";
import { fieldsOf, listOf, stringOf } from "../wire/json-reader.ts";
import { isFrom } from "../wire/wire-model.ts";
import { cacheFields, markItems, type OpenAICache, usesCache } from "./cache-fields.ts";
import { outputFormat } from "./output-format.ts";
import { effortOf, thinks } from "./reasoning.ts";
import { inlineAttachment } from "../../session/blob.ts";

type Body = Readonly<Record<string, unknown>>;

/** Converts a request to the body of the Responses API. The provider stores nothing: the session's log is the only copy. */
export function responsesBody(
  id: string,
  request: ModelRequest,
  baseURL: string | undefined,
  cache: OpenAICache,
): Body {
  const { tools = [], toolChoice, temperature, maxOutputTokens, stop = [], output } = request;
  if (stop.length > 0)
    throw new SessionError("INVALID_OPTION", 'The Responses API has no stop texts; use the option api: "chat".');
  const effort = effortOf(request.thinkingLevel);
  const items = request.messages.flatMap(inputItems);
  const cached = usesCache(cache, baseURL) ? cache : null;
  return {
    model: id,
    input: cached === null ? items : markItems(id, items.map(fieldsOf), "input_text"),
    ...(cached && cacheFields(id, request, cached)),
    store: false,
    // Without it, a reasoning model would start thinking again in each round; other models refuse the field.
    ...(effort !== undefined || thinks(id) ? { include: ["reasoning.encrypted_content"] } : {}),
    // The API's default is strict, which refuses schemas with optional properties.
    ...(tools.length === 0 ? {} : { tools: tools.map((tool) => ({ type: "function", ...tool, strict: false })) }),
    ...(tools.length === 0 || toolChoice === undefined ? {} : { tool_choice: responsesToolChoice(toolChoice) }),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    ...(output && { text: { format: { type: "json_schema", ...outputFormat(output) } } }),
  };
}

function responsesToolChoice(choice: NonNullable<ModelRequest["toolChoice"]>): unknown {
  return typeof choice === "string" ? choice : { type: "function", name: choice.name };
}

function inputItems(message: Message): readonly unknown[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: textOf(message.content) }];
    case "user":
      return [{ role: "user", content: inputContent(message.content) }];
    case "assistant":
      return outputItems(message);
    case "tool":
      return [{ type: "function_call_output", call_id: message.toolCallId, output: inputContent(message.content) }];
  }
}

function outputItems(message: AssistantMessage): readonly unknown[] {
  const data = isFrom(message, "openai") ? fieldsOf(message.providerData) : {};
  const items = data["api"] === "responses" ? listOf(data["output"]) : [];
  const calls = items.map(fieldsOf).filter((item) => item["type"] === "function_call");
  const own =
    items.length > 0 &&
    callsAre(
      message,
      calls.map((item) => stringOf(item["call_id"])),
    );
  if (own) return items;
  const text = textOf(message.content);
  return [
    ...(text === "" ? [] : [{ role: "assistant", content: text }]),
    ...(message.toolCalls ?? []).map((call) => ({
      type: "function_call",
      call_id: call.id,
      name: call.name,
      arguments: call.arguments || "{}",
    })),
  ];
}

function inputContent(content: Content): unknown {
  if (typeof content === "string") return content;
  return partsOf(content).flatMap((part) => {
    if (part.type === "text") return [{ type: "input_text", text: part.text }];
    return part.type === "thinking" ? [] : [inputPart(inlineAttachment(part))];
  });
}

function inputPart(part: DataPart): Body {
  if (part.type === "image") return { type: "input_image", image_url: dataUrl(part), detail: "auto" };
  const text = namedText(part);
  return text === undefined
    ? { type: "input_file", filename: part.name ?? "file", file_data: dataUrl(part) }
    : { type: "input_text", text };
}
