import type { JsonObject } from "../../internal/json.ts";
import { checkedMessage } from "../../session/checked-message.ts";
import { checkMessage } from "../../session/log/entry-check.ts";
import { type Content, type ToolCall, type ToolMessage, textOf } from "../../session/message.ts";
import { SandboxError, type SandboxFailure } from "../../session/sandbox/sandbox.ts";
import { describeThrown } from "../describe-thrown.ts";
import type { ToolContent } from "./tool.ts";

/** Why a call failed, as reported to the model. */
export type ToolFailure =
  | "invalid_tool_arguments"
  | "unknown_tool"
  | "tool_execution_exception"
  | "timeout"
  | "denied"
  | "interrupted"
  | "no_room"
  | SandboxFailure;

const KINDS: Readonly<Record<ToolFailure, true>> = {
  invalid_tool_arguments: true,
  unknown_tool: true,
  tool_execution_exception: true,
  timeout: true,
  denied: true,
  interrupted: true,
  no_room: true,
  os_error: true,
  file_not_found: true,
  unsupported: true,
  sandbox_closed: true,
  not_permitted: true,
  limit_exceeded: true,
  output_truncated: true,
};

/** The most characters of a tool result that are stored; of a longer one, the beginning and the end are kept. */
export const TOOL_RESULT_CHARACTERS_MAX = 200_000;

const ERROR_CHARACTERS_MAX = 4000;

/** The most base64 characters of images and files in one result. */
const ATTACHMENT_CHARACTERS_MAX: number = 6 * 1024 * 1024;

/** The message for the value that a tool returned. */
export function resultMessage(call: ToolCall, value: unknown): ToolMessage {
  try {
    // A checked copy, whatever the tool does with its value later.
    return checkedMessage(messageFor(call, value)) as ToolMessage;
  } catch (error) {
    return errorMessage(
      call,
      "tool_execution_exception",
      `The tool ran, but its result cannot be given to a model: ${describeThrown(error)}`,
    );
  }
}

function messageFor(call: ToolCall, value: unknown): ToolMessage {
  if (isToolContent(value)) return messageOf(call, shortened(value.content), value.isError === true);
  return messageOf(call, shortened(isParts(value) ? value : textFor(value)), false);
}

/** The message for a failed call. */
export function errorMessage(call: ToolCall, kind: ToolFailure, message: string, detail?: JsonObject): ToolMessage {
  const body = { ok: false, error_kind: kind, message: cut(message), ...(detail === undefined ? {} : { detail }) };
  return messageOf(call, JSON.stringify(body), true);
}

/** The failure that a result message reports; null if it is not a known kind. */
export function failureOf(message: ToolMessage): ToolFailure | null {
  if (message.isError !== true) return null;
  try {
    const { error_kind: kind } = JSON.parse(textOf(message.content)) as { readonly error_kind?: unknown };
    return typeof kind === "string" && Object.hasOwn(KINDS, kind) ? (kind as ToolFailure) : null;
  } catch {
    return null;
  }
}

/** The message for the error that a tool threw. */
export function thrownMessage(call: ToolCall, error: unknown): ToolMessage {
  if (!(error instanceof SandboxError)) return errorMessage(call, "tool_execution_exception", describeThrown(error));
  const { kind, message, output } = error;
  const detail = output === null ? undefined : { stdout: cut(output.stdout), stderr: cut(output.stderr) };
  return errorMessage(call, kind, message, detail);
}

function messageOf(call: ToolCall, content: Content, isError: boolean): ToolMessage {
  return { role: "tool", toolCallId: call.id, name: call.name, content, ...(isError ? { isError } : {}) };
}

function textFor(value: unknown): string {
  if (typeof value === "string") return value;
  // A tool that returns undefined has succeeded; some providers refuse an empty result.
  if (value === undefined) return '{"ok":true}';
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return text;
}

function isToolContent(value: unknown): value is ToolContent {
  if (typeof value !== "object" || value === null || !("content" in value)) return false;
  const known = Object.keys(value).every((key) => key === "content" || key === "isError");
  return known && (typeof value.content === "string" || Array.isArray(value.content));
}

/** Whether a list consists of content parts; any other list is data. */
function isParts(value: unknown): value is Exclude<Content, string> {
  if (!Array.isArray(value) || value.length === 0) return false;
  try {
    checkMessage({ role: "user", content: value });
    return true;
  } catch {
    return false;
  }
}

function shortened(content: Content): Content {
  if (typeof content === "string") return middleCut(content, TOOL_RESULT_CHARACTERS_MAX);
  const attached = content.reduce((sum, part) => sum + ("data" in part ? part.data.length : 0), 0);
  if (attached > ATTACHMENT_CHARACTERS_MAX) {
    throw new TypeError(`its images and files take ${attached} characters; ${ATTACHMENT_CHARACTERS_MAX} are the limit`);
  }
  if (textOf(content).length <= TOOL_RESULT_CHARACTERS_MAX) return content;
  const each = Math.floor(TOOL_RESULT_CHARACTERS_MAX / content.length);
  return content.map((part) => (part.type === "text" ? { ...part, text: middleCut(part.text, each) } : part));
}

/** A text with its middle removed if it is too long, without splitting a surrogate pair. */
function middleCut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const half = Math.floor(charactersMax / 2);
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, "");
  const tail = text.slice(-half).replace(/^[\udc00-\udfff]/, "");
  return `${head}\n… ${text.length - head.length - tail.length} characters left out …\n${tail}`;
}

function cut(text: string): string {
  return middleCut(text, ERROR_CHARACTERS_MAX);
}
