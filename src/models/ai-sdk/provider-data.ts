import type { JsonValue } from "../../internal/json.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { callsAre } from "../wire/content.ts";
import { type Fields, fieldsOf, listOf, parseObject, stringOf } from "../wire/json-reader.ts";
import { isFrom } from "../wire/wire-model.ts";
import type { AssistantPart, Block } from "./contract.ts";

const KEY = "aiSdkParts";

/**
 * What a provider wants back word for word, as parts of a prompt: its blocks with their metadata (signatures of
 * thinking, for one) and in their order. Undefined for an answer that a message says in full.
 */
export function providerDataOf(blocks: readonly Block[]): JsonValue | undefined {
  const special = blocks.some(
    (block) =>
      block.type === "reasoning" ||
      block.type === "tool-result" ||
      (block.type === "tool-call" && block.providerExecuted === true) ||
      Object.keys(block.providerMetadata ?? {}).length > 0,
  );
  if (!special) return undefined;
  const parts = blocks.flatMap(promptPart);
  // What a provider made in memory may hold undefined, which a log cannot.
  return JSON.parse(JSON.stringify({ [KEY]: parts })) as JsonValue;
}

/** The parts that the same provider gave, unless the message no longer asks for the same calls. */
export function ownParts(message: AssistantMessage, provider: string): AssistantPart[] | undefined {
  if (!isFrom(message, provider)) return undefined;
  const parts = listOf(fieldsOf(message.providerData)[KEY]).map(fieldsOf);
  const ids = parts.filter(isOurCall).map((part) => stringOf(part.toolCallId));
  return parts.length > 0 && callsAre(message, ids) ? ([...parts] as unknown as AssistantPart[]) : undefined;
}

/** The input of a call as the object that providers demand; text that holds none is kept under a name that says so. */
export function inputOf(text: string): Fields {
  return text.trim() === "" ? {} : (parseObject(text) ?? { malformed: text });
}

/** The base64 text of a file's data. */
export function base64Of(data: string | Uint8Array): string {
  return typeof data === "string" ? data : Buffer.from(data).toString("base64");
}

function isOurCall(part: Fields): boolean {
  return part.type === "tool-call" && part.providerExecuted !== true;
}

function promptPart(block: Block): AssistantPart[] {
  const { providerMetadata } = block;
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  switch (block.type) {
    case "text":
    case "reasoning":
      return [{ type: block.type, text: block.text, ...options }];
    case "file":
      return [{ type: "file", mediaType: block.mediaType, data: base64Of(block.data), ...options }];
    case "tool-call": {
      const { toolCallId, toolName, input, providerExecuted } = block;
      const executed = providerExecuted === undefined ? {} : { providerExecuted };
      return [{ type: "tool-call", toolCallId, toolName, input: inputOf(input), ...executed, ...options }];
    }
    case "tool-result": {
      const { toolCallId, toolName, result, isError } = block;
      const output = { type: isError === true ? ("error-json" as const) : ("json" as const), value: result };
      return [{ type: "tool-result", toolCallId, toolName, output, ...options }];
    }
    default:
      return [];
  }
}
