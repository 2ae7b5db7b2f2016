import { createHash } from "node:crypto";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  isBaseMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { defined } from "../../internal/defined.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { AssistantMessage, Content, Message } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";

/** A message as LangChain serializes it: the name of its class and the arguments of its constructor. */
export interface SerializedMessage {
  readonly lc: 1;
  readonly type: "constructor";
  readonly id: readonly string[];
  readonly kwargs: JsonObject;
}

const ROLES: Readonly<Record<string, Message["role"]>> = {
  human: "user",
  ai: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
};

/** Whether a value is a message that can be stored as a turn; `RemoveMessage` and the like cannot. */
export function isTurnMessage(value: unknown): value is BaseMessage {
  if (!isBaseMessage(value)) return false;
  const role = ROLES[value.getType()];
  return role !== undefined && (role !== "tool" || Boolean((value as ToolMessage).tool_call_id));
}

/** A LangChain message as a turn. Fields without a counterpart are kept in `metadata.langchain`, to restore it exactly. */
export function turnOf(message: BaseMessage, { id, kwargs }: SerializedMessage): Message {
  const { content, ...rest } = kwargs;
  const plain = typeof content === "string";
  const langchain = { id, kwargs: plain ? rest : kwargs } as unknown as JsonObject;
  const common = { content: plain ? content : partsOf(content), metadata: { langchain } };
  const role = ROLES[message.getType()] ?? "user";
  if (role === "assistant") return { role, ...common, ...answerFields(kwargs) };
  if (role !== "tool") return { role, ...common };
  const name = typeof kwargs["name"] === "string" ? kwargs["name"] : "";
  const failed = kwargs["status"] === "error" ? { isError: true } : {};
  return { role, ...common, toolCallId: String(kwargs["tool_call_id"]), name, ...failed };
}

/** The serialized LangChain message that a turn was made from; null if it was made otherwise. */
export function serializedOf({ content, metadata }: Message): SerializedMessage | null {
  const langchain = metadata?.["langchain"] as Pick<SerializedMessage, "id" | "kwargs"> | undefined;
  if (langchain === undefined) return null;
  const { id, kwargs } = langchain;
  return { lc: 1, type: "constructor", id, kwargs: { content: content as JsonValue, ...kwargs } };
}

const MESSAGE_CLASSES = { AIMessage, HumanMessage, SystemMessage, ToolMessage };

/** Constructs a message of LangChain's own classes, many times faster than its loader; null for other classes. */
export function constructed({ id, kwargs }: SerializedMessage): BaseMessage | null {
  const name = id[id.length - 1] ?? "";
  const text = JSON.stringify(kwargs);
  if (id[0] !== "langchain_core" || !Object.hasOwn(MESSAGE_CLASSES, name) || text.includes('"lc":')) return null;
  return new MESSAGE_CLASSES[name as keyof typeof MESSAGE_CLASSES](JSON.parse(text));
}

/** A digest that ignores empty fields and the order of fields: a constructor may add and reorder fields. */
export function digestOf({ kwargs }: SerializedMessage): string {
  const filled = Object.entries(kwargs).filter(([, value]) => value !== null && JSON.stringify(value).length > 2);
  return createHash("sha256").update(JSON.stringify(filled.sort())).digest("base64");
}

/** The texts in the parts of a message; the parts themselves are kept in the metadata. */
function partsOf(content: JsonValue | undefined): Content {
  const texts = (Array.isArray(content) ? content : []).map((part) => (part as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === "string").map((text) => ({ type: "text", text }));
}

function answerFields(kwargs: JsonObject): Partial<AssistantMessage> {
  const calls = (Array.isArray(kwargs["tool_calls"]) ? kwargs["tool_calls"] : []) as readonly JsonObject[];
  const toolCalls = calls.flatMap(({ id, name, args }) =>
    id && name ? [{ id: String(id), name: String(name), arguments: JSON.stringify(args ?? {}) }] : [],
  );
  const about = (kwargs["response_metadata"] ?? {}) as JsonObject;
  const model = about["model_name"] ?? about["model"];
  const provider = about["model_provider"] ?? "langchain";
  return defined({
    toolCalls: toolCalls.length > 0 ? toolCalls : undefined,
    usage: usageOf((kwargs["usage_metadata"] ?? undefined) as JsonObject | undefined),
    ...(typeof model === "string" ? { model, provider: String(provider) } : {}),
  });
}

function usageOf(usage: JsonObject | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const input = usage["input_token_details"] as JsonObject | undefined;
  const output = usage["output_token_details"] as JsonObject | undefined;
  return defined({
    inputTokens: tokens(usage["input_tokens"]) ?? 0,
    outputTokens: tokens(usage["output_tokens"]) ?? 0,
    totalTokens: tokens(usage["total_tokens"]) ?? 0,
    cacheReadTokens: tokens(input?.["cache_read"]),
    cacheWriteTokens: tokens(input?.["cache_creation"]),
    reasoningTokens: tokens(output?.["reasoning"]),
  });
}

function tokens(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" && value >= 0 ? Math.round(value) : undefined;
}
