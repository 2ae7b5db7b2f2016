import type { JsonValue } from "../../internal/json.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { callsAre } from "../wire/content.ts";
import { type Fields, fieldsOf, listOf, parseObject, stringOf } from "../wire/json-reader.ts";
import { isFrom } from "../wire/wire-model.ts";
import type { AssistantPart, Block } from "./contract.ts";

const KEY = "aiSdkParts";

/**
 * The prompt parts that a provider must get back verbatim: its blocks in order, with their metadata (such as the signatures of
 * thinking). Undefined if the message itself holds everything.
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
  // Removes undefined values, which a log cannot store.
  return JSON.parse(JSON.stringify({ [KEY]: parts })) as JsonValue;
}

/** The stored parts if the message is from this provider and still has the same calls; else undefined. */
export function ownParts(message: AssistantMessage, provider: string): AssistantPart[] | undefined {
  if (!isFrom(message, provider)) return undefined;
  const parts = listOf(fieldsOf(message.providerData)[KEY]).map(fieldsOf);
  const ids = parts.filter(isOurCall).map((part) => stringOf(part.toolCallId));
  return parts.length > 0 && callsAre(message, ids) ? ([...parts] as unknown as AssistantPart[]) : undefined;
}

/** The input of a call as an object, as providers require; a text that is not a JSON object becomes `{ malformed: text }`. */
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
