import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { Usage } from "./usage.ts";

/** One piece of a message. Images and files carry base64 data. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "file"; readonly mediaType: string; readonly data: string; readonly name?: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string };

/** What a message says: plain text, or parts. */
export type Content = string | readonly ContentPart[];

/** A model's request to run a tool; `arguments` is the raw JSON text the model wrote. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Why a model stopped. */
export type StopReason = "stop" | "length" | "tool_calls" | "content_filter" | "aborted" | "error";

interface MessageExtras {
  /** The agent that wrote it, in a session of several. */
  readonly agent?: string;
  readonly metadata?: JsonObject;
}

/** What a person says, or what the system sets. */
export interface InputMessage extends MessageExtras {
  readonly role: "system" | "user";
  readonly content: Content;
}

/** What a model answers. */
export interface AssistantMessage extends MessageExtras {
  readonly role: "assistant";
  readonly content: Content | null;
  readonly toolCalls?: readonly ToolCall[];
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: Usage;
  readonly cost?: number;
  readonly stopReason?: StopReason;
  /** The provider's own blocks, sent back verbatim to that provider. */
  readonly providerData?: JsonValue;
}

/** What a tool answers. */
export interface ToolMessage extends MessageExtras {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly name: string;
  readonly content: Content;
  readonly isError?: boolean;
}

/** One message of a conversation, in no provider's dialect. */
export type Message = InputMessage | AssistantMessage | ToolMessage;

/** One of the messages that a run is asked for with: what was said, and nothing of how it came about. */
export interface RequestMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: Content;
}

/**
 * The text of a message's content: its text parts joined, nothing of images, files or thinking.
 *
 * @example
 * textOf([{ type: "text", text: "Name a prime." }]); // "Name a prime."
 */
export function textOf(content: Content | null): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => (part?.type === "text" ? [part.text] : [])).join("\n");
}

/** The parts of a message's content, a plain text as one of them. */
export function partsOf(content: Content | null): readonly ContentPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
