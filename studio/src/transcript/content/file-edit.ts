import type { ToolCall } from "../../../../src/session/message.ts";

/** The change of a file by a call: the old text, if the call has it, and the new text. */
export interface FileEdit {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  /** Whether the new text is the whole file. */
  readonly whole: boolean;
}

const OLD_NAMES = ["old_text", "oldText", "old_string", "old_str"];
const NEW_NAMES = ["new_text", "newText", "new_string", "new_str"];
const WHOLE_NAMES = ["content", "file_text", "text"];
const PATH_NAMES = ["path", "file_path", "filePath", "file"];

/** The arguments of a call as an object; null if they are incomplete or something else. */
export function argumentsOf({ arguments: raw }: Pick<ToolCall, "arguments">): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** The file change of a call; null for any other call. */
export function fileEditOf(call: Pick<ToolCall, "name" | "arguments">): FileEdit | null {
  const given = argumentsOf(call);
  if (given === null) return null;
  const textOf = (names: readonly string[]): string | null => {
    const value = names.map((name) => given[name]).find((each) => typeof each === "string");
    return typeof value === "string" ? value : null;
  };
  const path = textOf(PATH_NAMES);
  const [oldText, newText] = [textOf(OLD_NAMES), textOf(NEW_NAMES)];
  if (path === null) return null;
  if (oldText !== null && newText !== null) return { path, oldText, newText, whole: false };
  const whole = /write|create/i.test(call.name) ? textOf(WHOLE_NAMES) : null;
  return whole === null ? null : { path, oldText: "", newText: whole, whole: true };
}
