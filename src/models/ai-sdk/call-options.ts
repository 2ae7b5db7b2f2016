import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { ModelRequest } from "../../agent/model/model.ts";
import { SessionError } from "../../session/errors.ts";
import type { AssistantMessage, Content, Message, ToolMessage } from "../../session/message.ts";
import { partsOf, textOf } from "../../session/message.ts";
import { isMerged } from "../../session/log/merged-turns.ts";
import { applicationText, leadingSystem, unreadable } from "../wire/content.ts";
import { strictSchema } from "../wire/strict-schema.ts";
import type {
  AssistantPart,
  CallOptions,
  ContractVersion,
  PromptMessage,
  ToolOutput,
  ToolOutputV2,
  UserPart,
} from "./contract.ts";
import { inputOf, ownParts } from "./provider-data.ts";
import { inlineAttachment } from "../../session/blob.ts";

/** The options of a call, and the messages that are answers to requests of another session, which a merge brought. */
export interface PreparedCall {
  readonly options: CallOptions;
  readonly merged: ReadonlySet<PromptMessage>;
}

/** Converts a request to the call options of the AI SDK. The result shares parts with the request and must not be mutated. */
export function callOptions(
  request: ModelRequest,
  model: { readonly provider: string; readonly specificationVersion: ContractVersion },
  abortSignal: AbortSignal,
  thinking: JsonObject | undefined,
): PreparedCall {
  const { tools = [], toolChoice, temperature, maxOutputTokens, stop, output } = request;
  const providerOptions = mergedOptions(thinking, request.providerOptions);
  const { prompt, merged } = promptOf(request.messages, model);
  const options: CallOptions = {
    prompt,
    abortSignal,
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
    ...(tools.length === 0 || toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice) }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(output && { responseFormat: { type: "json", name: "answer", schema: sharedSchema(output) ?? output } }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  };
  return { options, merged };
}

/** Rewrites a schema with the keywords that every provider accepts; null if they cannot express it. */
export function sharedSchema(output: JsonObject): JsonObject | null {
  return strictSchema(output, { allRequired: true });
}

function promptOf(
  messages: readonly Message[],
  model: { readonly provider: string; readonly specificationVersion: ContractVersion },
): { readonly prompt: PromptMessage[]; readonly merged: ReadonlySet<PromptMessage> } {
  const prompt: PromptMessage[] = [];
  const merged = new Set<PromptMessage>();
  const leading = leadingSystem(messages);
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      const output = outputOf(message, model.specificationVersion);
      const result = { type: "tool-result" as const, toolCallId: message.toolCallId, toolName: message.name, output };
      const last = prompt.at(-1);
      // All results of a round go into one message, as some providers require.
      if (last?.role === "tool") last.content.push(result);
      else prompt.push({ role: "tool", content: [result] });
    } else if (message.role === "assistant") {
      const content = ownParts(message, model.provider) ?? assistantParts(message);
      if (content.length === 0) continue;
      const answer: PromptMessage = { role: "assistant", content };
      prompt.push(answer);
      if (isMerged(message)) merged.add(answer);
    } else if (message.role === "system" && index < leading) {
      prompt.push({ role: "system", content: wordsOf(message.content) });
    } else if (message.role === "system") {
      // Some providers refuse system messages after others, or move them to the beginning.
      prompt.push({ role: "user", content: userParts(applicationText(wordsOf(message.content))) });
    } else {
      prompt.push({ role: "user", content: userParts(message.content) });
    }
  }
  return { prompt, merged };
}

function userParts(content: Content): UserPart[] {
  return partsOf(content).flatMap((part): UserPart[] => {
    if (part.type === "thinking") return [];
    if (part.type === "text") return [{ type: "text", text: part.text }];
    const { mediaType, data, name } = inlineAttachment(part);
    return [{ type: "file", mediaType, data, ...(name === undefined ? {} : { filename: name }) }];
  });
}

/** The parts of another provider's answer, without its thinking, which only that provider accepts. */
function assistantParts({ content, toolCalls = [] }: AssistantMessage): AssistantPart[] {
  const said = userParts(content ?? "").filter((part) => part.type !== "text" || part.text !== "");
  return [
    ...said,
    ...toolCalls.map(({ id, name, arguments: text }): AssistantPart => {
      return { type: "tool-call", toolCallId: id, toolName: name, input: inputOf(text) };
    }),
  ];
}

function outputOf({ content, isError = false }: ToolMessage, version: ContractVersion): ToolOutput {
  const parts = partsOf(content).filter((part) => part.type !== "thinking");
  const onlyText = parts.every((part) => part.type === "text");
  if (onlyText || isError) return { type: isError ? "error-text" : "text", value: wordsOf(content) };
  if (version === "v2") {
    const value = parts.map((part) =>
      part.type === "text"
        ? { type: "text" as const, text: part.text }
        : { type: "media" as const, mediaType: part.mediaType, data: inlineAttachment(part).data },
    );
    return { type: "content", value } satisfies ToolOutputV2 as unknown as ToolOutput;
  }
  const value = parts.map((part) => {
    if (part.type === "text") return { type: "text" as const, text: part.text };
    const { mediaType, data, name } = inlineAttachment(part);
    if (part.type === "image") return { type: "image-data" as const, mediaType, data };
    return { type: "file-data" as const, mediaType, data, ...(name === undefined ? {} : { filename: name }) };
  });
  return { type: "content", value };
}

/** Content as plain text; a note tells the model about each omitted file. */
function wordsOf(content: Content): string {
  const hidden = partsOf(content).flatMap((part) => ("data" in part ? [unreadable(part)] : []));
  return [textOf(content), ...hidden].filter((text) => text !== "").join("\n");
}

function toolOf({ name, description, parameters }: NonNullable<ModelRequest["tools"]>[number]) {
  return { type: "function" as const, name, description, inputSchema: parameters as object };
}

function choiceOf(choice: NonNullable<ModelRequest["toolChoice"]>): NonNullable<CallOptions["toolChoice"]> {
  return typeof choice === "object" ? { type: "tool", toolName: choice.name } : { type: choice };
}

/** Merges provider options; those of the request override those of its thinking level. */
function mergedOptions(thinking: JsonObject | undefined, given: JsonValue | undefined): CallOptions["providerOptions"] {
  if (thinking === undefined && (given === undefined || given === null)) return undefined;
  const merged: Record<string, JsonObject> = { ...checkedOptions(thinking) };
  for (const [provider, options] of Object.entries(checkedOptions(given ?? undefined))) {
    merged[provider] = { ...merged[provider], ...options };
  }
  return merged as unknown as NonNullable<CallOptions["providerOptions"]>;
}

function checkedOptions(options: JsonValue | undefined): Readonly<Record<string, JsonObject>> {
  if (options === undefined) return {};
  const isObject = (value: JsonValue): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(options) || !Object.values(options as JsonObject).every(isObject)) {
    throw new SessionError(
      "INVALID_OPTION",
      'The providerOptions of an AI SDK model must hold an object for each provider, such as { "openai": { … } }.',
    );
  }
  return options as Readonly<Record<string, JsonObject>>;
}
