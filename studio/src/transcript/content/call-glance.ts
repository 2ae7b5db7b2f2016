import type { ToolCall } from "../../../../src/session/message.ts";
import { argumentsOf, type FileEdit, fileEditOf } from "./file-edit.ts";

/** The summary of a call on its collapsed card. */
export type CallGlance =
  | { readonly kind: "edit"; readonly edit: FileEdit }
  | {
      readonly kind: "lines";
      /** The command that was run; null for other calls. */
      readonly command: string | null;
      readonly lines: readonly string[];
      /** How many more lines or items there are. */
      readonly more: number;
    }
  | {
      readonly kind: "table";
      readonly columns: readonly string[];
      readonly rows: readonly (readonly string[])[];
      readonly more: number;
    };

const LINES_MAX = 5;
const ROWS_MAX = 5;
const COLUMNS_MAX = 5;
const CELL_CHARACTERS_MAX = 120;
const LINE_CHARACTERS_MAX = 300;
const CHARACTERS_MAX = 200_000;
const COMMAND_NAMES = ["command", "cmd", "script"];

/** The summary of a call; null if its name and arguments are enough. `result` is null until it has arrived. */
export function glanceOf(
  call: Pick<ToolCall, "name" | "arguments">,
  result: { readonly text: string; readonly failed: boolean } | null,
): CallGlance | null {
  const edit = result?.failed === true ? null : fileEditOf(call);
  if (edit !== null) return { kind: "edit", edit };
  const command = commandOf(call);
  const text = result?.text.slice(0, CHARACTERS_MAX) ?? "";
  const table = command === null && result?.failed !== true ? tableOf(text) : null;
  if (table !== null) return table;
  const lines = text.trimEnd() === "" ? [] : text.trimEnd().split(/\r?\n/);
  if (command === null && lines.length === 0) return null;
  const shown = lines.slice(0, LINES_MAX).map((line) => cut(line, LINE_CHARACTERS_MAX));
  return { kind: "lines", command, lines: shown, more: lines.length - shown.length };
}

function commandOf(call: Pick<ToolCall, "arguments">): string | null {
  const given = argumentsOf(call);
  const value = COMMAND_NAMES.map((name) => given?.[name]).find((each) => each !== undefined);
  const command = Array.isArray(value) ? value.join(" ") : value;
  return typeof command === "string" && command !== "" ? cut(command, 2 * LINE_CHARACTERS_MAX) : null;
}

/** A list of objects as a table: the text is such a list, or an object that contains exactly one. */
function tableOf(text: string): CallGlance | null {
  const items = listIn(text);
  const first = items?.[0];
  if (items === null || !items.every(isObject) || first === undefined) return null;
  const columns = Object.keys(first as object).slice(0, COLUMNS_MAX);
  if (columns.length === 0) return null;
  const rows = items
    .slice(0, ROWS_MAX)
    .map((item) => columns.map((name) => cellOf((item as Record<string, unknown>)[name])));
  return { kind: "table", columns, rows, more: items.length - rows.length };
}

function listIn(text: string): readonly unknown[] | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
    const lists = isObject(value) ? Object.values(value).filter((each) => Array.isArray(each)) : [];
    return lists.length === 1 ? (lists[0] as readonly unknown[]) : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return cut(typeof value === "string" ? value : JSON.stringify(value), CELL_CHARACTERS_MAX);
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
