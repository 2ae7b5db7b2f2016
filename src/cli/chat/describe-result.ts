import { textOf, type ToolMessage } from "../../index.ts";
import { parseJsonObject } from "../../models/parse-json-object.ts";
import { printable } from "../terminal.ts";

const CHARACTERS_MAX = 80;

/** The result of a call in a few words, on one line. */
export function describeResult({ content, isError }: Pick<ToolMessage, "content" | "isError">): string {
  if (isError === true) return `failed: ${printable(resultText({ content, isError }), CHARACTERS_MAX)}`;
  const text = textOf(content);
  const fields = parseJsonObject(text) ?? {};
  if (typeof fields.exit_code === "number") {
    const printed = textField(fields, "stdout") || textField(fields, "stderr") || "nothing printed";
    return `exit ${fields.exit_code}: ${printable(printed, CHARACTERS_MAX)}`;
  }
  if (Array.isArray(fields.entries))
    return `${fields.entries.length} ${fields.entries.length === 1 ? "file" : "files"}`;
  return printable(text, CHARACTERS_MAX);
}

/** The result of a call as text: the reason of a failure, the output of a command, else the result as it is. */
export function resultText({ content, isError }: Pick<ToolMessage, "content" | "isError">): string {
  const text = textOf(content);
  const fields = parseJsonObject(text) ?? {};
  if (isError === true) return textField(fields, "message") ?? text;
  if (typeof fields.exit_code !== "number") return text;
  const printed = [textField(fields, "stdout"), textField(fields, "stderr")].filter(Boolean).join("\n");
  return fields.exit_code === 0 ? printed : `${printed}\nexit ${fields.exit_code}`;
}

function textField(fields: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = fields[name];
  return typeof value === "string" ? value : undefined;
}
