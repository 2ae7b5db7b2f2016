import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { Usage } from "./usage.ts";

/** One part of a message's content. Images and files carry base64 data. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | InlineAttachment
  | BlobAttachment
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string };

/** An image or a file whose bytes are in the message, as base64. A store also takes a `Uint8Array` as `data`. */
export interface InlineAttachment {
  readonly type: "image" | "file";
  readonly mediaType: string;
  readonly data: string;
  readonly name?: string;
}

/** An image or a file whose bytes are stored beside the log; `store.blob(sessionId, part)` returns them. */
export interface BlobAttachment {
  readonly type: "image" | "file";
  readonly mediaType: string;
  /** `sha256:` and the hash of the bytes in hexadecimal. */
  readonly blob: string;
  /** How many bytes there are. */
  readonly bytes: number;
  readonly name?: string;
}

/** An image or a file in a message. */
export type Attachment = InlineAttachment | BlobAttachment;

/** The content of a message: a string, or a list of parts. */
export type Content = string | readonly ContentPart[];

/** A model's request to run a tool; `arguments` is the JSON text exactly as the model wrote it. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Why a model stopped generating. */
export type StopReason = "stop" | "length" | "tool_calls" | "content_filter" | "aborted" | "error";

interface MessageExtras {
  /** The agent that wrote the message, in a session with several agents. */
  readonly agent?: string;
  readonly metadata?: JsonObject;
}

/** A message of a user or of the system. */
export interface InputMessage extends MessageExtras {
  readonly role: "system" | "user";
  readonly content: Content;
}

/** A message of a model. */
export interface AssistantMessage extends MessageExtras {
  readonly role: "assistant";
  readonly content: Content | null;
  readonly toolCalls?: readonly ToolCall[];
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: Usage;
  readonly cost?: number;
  readonly stopReason?: StopReason;
  /** The provider's own content blocks, sent back to that provider unchanged. */
  readonly providerData?: JsonValue;
}

/** The result of a tool call. */
export interface ToolMessage extends MessageExtras {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly name: string;
  readonly content: Content;
  readonly isError?: boolean;
}

/** One message of a conversation, in a provider-independent form. */
export type Message = InputMessage | AssistantMessage | ToolMessage;

/** One message of a run's input, without fields that only a recorded message has. */
export interface RequestMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: Content;
}

/**
 * The text of a message's content: its text parts joined, without images, files and thinking.
 *
 * @example
 * textOf([{ type: "text", text: "Name a prime." }]); // "Name a prime."
 */
export function textOf(content: Content | null): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => (part?.type === "text" ? [part.text] : [])).join("\n");
}

/** The parts of a message's content; a string becomes one text part. */
export function partsOf(content: Content | null): readonly ContentPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** How many bytes an image or a file has. */
export function attachmentBytes(part: Attachment): number {
  return "blob" in part ? part.bytes : Math.floor((part.data.length * 3) / 4);
}
