import type { ModelRequest } from "../../agent/model/model.ts";
import {
  type AssistantMessage,
  type Content,
  type Message,
  textOf,
  type ToolCall,
  type ToolMessage,
  partsOf,
} from "../../session/message.ts";
import { applicationText, callsAre, type DataPart, fileText, leadingSystem, unreadable } from "../wire/content.ts";
import { type Fields, fieldsOf, listOf, parseObject, stringOf } from "../wire/json-reader.ts";
import { type CacheSetting, markedMessages } from "../wire/prompt-cache.ts";
import { isMerged } from "../../session/log/merged-turns.ts";
import { isFrom } from "../wire/wire-model.ts";
import { outputFormat } from "./output-format.ts";
import { outputTokensOf, thinkingFields } from "./thinking.ts";
import { inlineAttachment } from "../../session/blob.ts";

/** The options of the model that affect the body. */
export interface MessagesOptions {
  /** Null: no request has cache breakpoints. */
  readonly cache: CacheSetting<"5m" | "1h"> | null;
  readonly thinking: "budget" | "adaptive" | undefined;
}

interface WireMessage {
  readonly role: "user" | "assistant";
  readonly content: Fields[];
}

/** Converts a request to the body of the Messages API. */
export function messagesBody(id: string, request: ModelRequest, options: MessagesOptions): Fields {
  const { temperature, maxOutputTokens, stop = [], output } = request;
  const maxTokens = maxOutputTokens ?? outputTokensOf(id);
  const thinking = thinkingFields(id, request, maxTokens, options.thinking);
  const isThinking = Object.hasOwn(thinking, "output_config") || fieldsOf(thinking["thinking"])["type"] === "enabled";
  const format = output && (outputFormat(id, output) ?? { type: "json_schema", schema: output });
  const { messages, roles } = wireMessages(request.messages);
  const system = systemBlocks(request.messages);
  const { tools, toolChoice } = toolFields(request);
  if (options.cache !== null) {
    const { last, before } = markedMessages(roles);
    const ends = [tools, system, messages[before]?.content ?? [], messages[last]?.content ?? []];
    for (const blocks of ends) markLast(blocks, options.cache.lifetime);
  }
  return {
    model: id,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system }),
    messages,
    ...(tools.length === 0 ? {} : { tools }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...thinking,
    ...(format && { output_config: { ...fieldsOf(thinking["output_config"]), format } }),
    // The provider refuses a temperature together with thinking.
    ...(temperature === undefined || isThinking ? {} : { temperature }),
    ...(stop.length === 0 ? {} : { stop_sequences: stop }),
  };
}

/** The blocks for a message's text and calls. Thinking is omitted: only the provider that signed it accepts it. */
export function blocksOf(message: AssistantMessage): Fields[] {
  const said = partsOf(message.content).flatMap((part): Fields[] => {
    if (part.type === "thinking") {
      const { text: thinking, signature } = part;
      const signed = message.provider === "anthropic" && signature !== undefined;
      return signed ? [{ type: "thinking", thinking, signature }] : [];
    }
    return part.type === "text" ? textBlocks(part.text) : [{ type: "text", text: unreadable(part) }];
  });
  return [...said, ...(message.toolCalls ?? []).map(toolUseBlock)];
}

/**
 * Sets a cache breakpoint at the last block: the next request begins with the same blocks. The provider looks for a
 * cached prefix at most 20 blocks before a breakpoint, so a request also sets one where the last breakpoint of the
 * previous request was.
 */
function markLast(blocks: Fields[], lifetime: "5m" | "1h" | undefined): void {
  const last = blocks.pop();
  if (last === undefined) return;
  blocks.push({ ...last, cache_control: { type: "ephemeral", ...(lifetime === "1h" ? { ttl: lifetime } : {}) } });
}

/** The blocks of the system messages at the beginning. A later one stays in its place: here it would change all that follows. */
function systemBlocks(messages: readonly Message[]): Fields[] {
  return messages.slice(0, leadingSystem(messages)).flatMap(({ content }) => textBlocks(textOf(content)));
}

function toolFields(request: ModelRequest): { tools: Fields[]; toolChoice: Fields | undefined } {
  const { tools = [], toolChoice } = request;
  const described = tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
  if (described.length > 0) return { tools: described, toolChoice: choiceOf(toolChoice) };
  // The provider refuses a conversation with calls of tools that the request does not declare.
  const used = toolsUsed(request.messages);
  return { tools: used, toolChoice: used.length === 0 ? undefined : { type: "none" } };
}

function choiceOf(choice: ModelRequest["toolChoice"]): Fields | undefined {
  if (choice === undefined) return undefined;
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

function toolsUsed(messages: readonly Message[]): Fields[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  const names = [...new Set(calls.map((call) => call.name))];
  return names.map((name) => ({
    name,
    description: "A tool that was used earlier.",
    input_schema: { type: "object" },
  }));
}

/**
 * Converts messages. Tool results and the user message after them become one message, results first, as the API requires. `roles` are
 * those of the messages, with "merged" for answers to the requests of another session.
 */
function wireMessages(messages: readonly Message[]): { readonly messages: WireMessage[]; readonly roles: string[] } {
  const out: WireMessage[] = [];
  const roles: string[] = [];
  for (const message of messages.slice(leadingSystem(messages))) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = contentBlocks(message);
    // The provider refuses messages without content.
    if (blocks.length === 0) continue;
    const last = out.at(-1);
    const marked = role === "assistant" && isMerged(message) ? "merged" : role;
    if (last?.role === role) {
      last.content.push(...blocks);
      if (marked === "assistant") roles[roles.length - 1] = marked;
    } else {
      out.push({ role, content: [...blocks] });
      roles.push(marked);
    }
  }
  return { messages: out, roles };
}

function contentBlocks(message: Message): readonly Fields[] {
  if (message.role === "assistant") return ownBlocks(message) ?? blocksOf(message);
  if (message.role === "tool") return [toolResultBlock(message)];
  if (message.role === "system") return textBlocks(applicationText(textOf(message.content)));
  return userBlocks(message.content);
}

/** The provider's own blocks, verbatim; undefined if the message is not its own or its calls were changed since. */
function ownBlocks(message: AssistantMessage): readonly Fields[] | undefined {
  if (!isFrom(message, "anthropic")) return undefined;
  const blocks = listOf(message.providerData).map(fieldsOf);
  const ids = blocks.filter((block) => block["type"] === "tool_use").map((block) => stringOf(block["id"]));
  return blocks.length > 0 && callsAre(message, ids) ? blocks : undefined;
}

function userBlocks(content: Content): Fields[] {
  return partsOf(content).flatMap((part): Fields[] => {
    if (part.type === "thinking") return [];
    return part.type === "text" ? textBlocks(part.text) : [dataBlock(inlineAttachment(part))];
  });
}

/** A text block; none for blank text, which the provider refuses. */
function textBlocks(text: string): Fields[] {
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

function dataBlock(part: DataPart): Fields {
  const source = { type: "base64", media_type: part.mediaType, data: part.data };
  if (part.type === "image") return { type: "image", source };
  const title = part.name === undefined ? {} : { title: part.name };
  if (part.mediaType === "application/pdf") return { type: "document", source, ...title };
  const text = fileText(part);
  return text === undefined
    ? { type: "text", text: unreadable(part) }
    : { type: "document", source: { type: "text", media_type: "text/plain", data: text }, ...title };
}

function toolResultBlock(message: ToolMessage): Fields {
  const content = userBlocks(message.content);
  return {
    type: "tool_result",
    tool_use_id: wireId(message.toolCallId),
    ...(content.length === 0 ? {} : { content }),
    ...(message.isError === true ? { is_error: true } : {}),
  };
}

function toolUseBlock(call: ToolCall): Fields {
  return { type: "tool_use", id: wireId(call.id), name: call.name, input: inputOf(call.arguments) };
}

/** The arguments of a call as an object; a text that is not a JSON object is passed back under `unreadable_arguments`. */
export function inputOf(args: string): Fields {
  return args.trim() === "" ? {} : (parseObject(args) ?? { unreadable_arguments: args });
}

/** Replaces characters that this provider refuses in ids by their code points, so that different ids stay different. */
function wireId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, (character) => `_${character.codePointAt(0)?.toString(16)}_`);
}
