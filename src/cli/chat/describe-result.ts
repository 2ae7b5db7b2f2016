import { textOf, type ToolMessage } from "../../index.ts";
import { printable } from "../terminal.ts";

const CHARACTERS_MAX = 80;

/** What came of a call, in a few words on one line. */
export function describeResult({ content, isError }: Pick<ToolMessage, "content" | "isError">): string {
  const text = textOf(content);
  const fields = objectOf(text);
  if (isError === true) return `failed: ${printable(textField(fields, "message") ?? text, CHARACTERS_MAX)}`;
  if (typeof fields.exit_code === "number") {
    const printed = textField(fields, "stdout") || textField(fields, "stderr") || "nothing printed";
    return `exit ${fields.exit_code}: ${printable(printed, CHARACTERS_MAX)}`;
  }
  if (Array.isArray(fields.entries))
    return `${fields.entries.length} ${fields.entries.length === 1 ? "file" : "files"}`;
  return printable(text, CHARACTERS_MAX);
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

function textField(fields: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = fields[name];
  return typeof value === "string" ? value : undefined;
}
