import type { JsonObject } from "../internal/json.ts";
import { checkMessage } from "../session/entry-check.ts";
import { type Content, type ToolCall, type ToolMessage, textOf } from "../session/message.ts";
import { SandboxError, type SandboxFailure } from "../session/sandbox.ts";
import type { ToolContent } from "./tool.ts";

/** What went wrong with a call, as the model is told. */
export type ToolFailure =
  | "invalid_tool_arguments"
  | "unknown_tool"
  | "tool_execution_exception"
  | "timeout"
  | "denied"
  | "interrupted"
  | SandboxFailure;

/** The most characters of a tool's answer that go into a session; of a longer one the beginning and the end are kept. */
export const TOOL_RESULT_CHARACTERS_MAX = 200_000;

const ERROR_CHARACTERS_MAX = 4000;

/** The most base64 characters of images and files in one answer. */
const ATTACHMENT_CHARACTERS_MAX: number = 6 * 1024 * 1024;

/** The message of what a tool returned. */
export function resultMessage(call: ToolCall, value: unknown): ToolMessage {
  try {
    if (isToolContent(value)) {
      const message = messageOf(call, shortened(value.content), value.isError === true);
      checkMessage(message);
      return message;
    }
    return messageOf(call, shortened(textFor(value)), false);
  } catch (error) {
    return errorMessage(
      call,
      "tool_execution_exception",
      `The tool ran, but its result cannot be given as JSON: ${reasonOf(error)}`,
    );
  }
}

/** The message of a call that failed. */
export function errorMessage(call: ToolCall, kind: ToolFailure, message: string, detail?: JsonObject): ToolMessage {
  const body = { ok: false, error_kind: kind, message: cut(message), ...(detail === undefined ? {} : { detail }) };
  return messageOf(call, JSON.stringify(body), true);
}

/** The message of what a tool threw. */
export function thrownMessage(call: ToolCall, error: unknown): ToolMessage {
  if (!(error instanceof SandboxError)) return errorMessage(call, "tool_execution_exception", reasonOf(error));
  const { kind, message, output } = error;
  const detail = output === null ? undefined : { stdout: cut(output.stdout), stderr: cut(output.stderr) };
  return errorMessage(call, kind, message, detail);
}

function messageOf(call: ToolCall, content: Content, isError: boolean): ToolMessage {
  return { role: "tool", toolCallId: call.id, name: call.name, content, ...(isError ? { isError } : {}) };
}

function textFor(value: unknown): string {
  if (typeof value === "string") return value;
  // A tool that returns nothing has done what it was asked; an empty result is refused by some providers.
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

/** A text with its middle left out, where it is too long, and never half of a surrogate pair. */
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

function reasonOf(error: unknown): string {
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  try {
    return String(error);
  } catch {
    return "The tool threw something that is not an error.";
  }
}
