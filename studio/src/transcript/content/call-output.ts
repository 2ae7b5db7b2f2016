import type { ToolCall } from "../../../../src/session/message.ts";
import { formatCount } from "../../sessions/list/amounts.ts";
import { argumentsOf, type FileEdit, fileEditOf } from "./file-edit.ts";

/** The result of a call in its best form. */
export type CallOutput = {
  /** Whether the call failed. */
  readonly failed: boolean;
  /** A sentence about the result; null if the rest is enough. */
  readonly note: string | null;
} & (
  | { readonly kind: "edit"; readonly edit: FileEdit }
  | {
      readonly kind: "terminal";
      /** The command or program; null if only its output is known. */
      readonly command: string | null;
      /** The language of a program; null for a shell command. */
      readonly language: string | null;
      readonly stdout: string;
      readonly stderr: string;
      /** Null if it is unknown. */
      readonly exitCode: number | null;
    }
  | { readonly kind: "file"; readonly path: string; readonly text: string; readonly firstLine: number }
  | {
      readonly kind: "table";
      readonly columns: readonly string[];
      readonly rows: readonly (readonly string[])[];
    }
  | { readonly kind: "text"; readonly text: string }
);

/** The result of a call, as its message has it. */
export interface ResultText {
  readonly text: string;
  readonly failed: boolean;
}

type Call = Pick<ToolCall, "name" | "arguments">;
type Fields = Readonly<Record<string, unknown>>;

const ROWS_MAX = 500;
const COLUMNS_MAX = 8;
const CELL_CHARACTERS_MAX = 200;
/** Longer JSON is shown as text: parsing and showing it would block the page. */
const PARSED_CHARACTERS_MAX = 400_000;
const COMMAND_NAMES = ["command", "cmd", "script"];
const PATH_NAMES = ["path", "file_path", "filePath", "file"];

/**
 * The result of a call: the change of a file, a command with its output, a file with its name, a table, or a text. Null if
 * the name and the arguments say everything. `result` is null until it has arrived.
 */
export function outputOf(call: Call, result: ResultText | null): CallOutput | null {
  const given = argumentsOf(call);
  const failed = result?.failed === true;
  const data = result === null ? null : objectIn(result.text);
  const error = failed ? messageIn(data) : null;
  const text = error ?? result?.text ?? "";
  const edit = failed ? null : fileEditOf(call);
  if (edit !== null) return { kind: "edit", failed, edit, note: editNote(data) };
  const ran = commandOf(given);
  const streams = streamsOf(data);
  if (ran !== null || streams !== null) {
    const { stdout, stderr, exitCode } = streams ?? { stdout: text, stderr: "", exitCode: null };
    const note = streams?.truncated === true ? "The output was shortened before it was recorded." : null;
    return { kind: "terminal", failed, note, command: null, language: null, ...ran, stdout, stderr, exitCode };
  }
  const table = failed ? null : tableOf(result?.text ?? "", data);
  if (table !== null) return table;
  const path = firstText(given, PATH_NAMES);
  if (path !== null && data !== null && typeof data["exists"] === "boolean") {
    return { kind: "text", failed, note: null, text: data["exists"] ? `${path} exists.` : `${path} does not exist.` };
  }
  if (text.trim() === "") return null;
  if (path !== null && data === null && !failed && /read|view|cat|open/i.test(call.name)) {
    const numbered = call.name === "Read" ? numberedText(text) : null;
    return { kind: "file", failed, path, ...(numbered ?? fileText(text, given)) };
  }
  return { kind: "text", failed, note: null, text };
}

/** The note that the workspace tools append to a file that is not shown completely. */
const READ_NOTE = /\n\[((?:Lines? \d|Line )[^\n]*)\]$/;

/** A line of a file as the tool Read of Claude Code returns it: its number, and a tab or an arrow. */
const NUMBERED_LINE = /^ *(\d{1,7})[\t→]/;

interface FileText {
  readonly text: string;
  readonly note: string | null;
  readonly firstLine: number;
}

function fileText(text: string, given: Fields | null): FileText {
  const found = READ_NOTE.exec(text);
  const start = given?.["start_line"];
  return {
    text: found === null ? text : text.slice(0, found.index),
    note: found?.[1] ?? null,
    firstLine: typeof start === "number" ? start : 1,
  };
}

/** The file in a result whose lines are numbered, without the numbers; null if they are not. What follows the file is the note. */
function numberedText(text: string): FileText | null {
  const lines = text.split("\n");
  const first = Number(NUMBERED_LINE.exec(lines[0] ?? "")?.[1] ?? Number.NaN);
  const end = lines.findIndex((line, index) => Number(NUMBERED_LINE.exec(line)?.[1] ?? Number.NaN) !== first + index);
  if (end === 0) return null;
  const numbered = end === -1 ? lines : lines.slice(0, end);
  const rest = lines.slice(numbered.length).join("\n").trim();
  return {
    text: numbered.map((line) => line.replace(NUMBERED_LINE, "")).join("\n"),
    note: rest === "" ? null : rest,
    firstLine: first,
  };
}

function editNote(data: Fields | null): string | null {
  const { replacements, first_line: line } = data ?? {};
  if (typeof replacements !== "number" || typeof line !== "number") return null;
  return replacements === 1 ? `Changed at line ${line}.` : `Changed in ${replacements} places, from line ${line} on.`;
}

function commandOf(given: Fields | null): { command: string; language: string | null } | null {
  const value = COMMAND_NAMES.map((name) => given?.[name]).find((each) => each !== undefined);
  const command = Array.isArray(value) ? value.join(" ") : value;
  if (typeof command === "string" && command !== "") return { command, language: null };
  const { code, language } = given ?? {};
  if (typeof code !== "string" || typeof language !== "string" || code === "") return null;
  return { command: code, language };
}

function streamsOf(data: Fields | null) {
  const { exit_code: exitCode, stdout, stderr, truncated } = data ?? {};
  if (typeof exitCode !== "number" || typeof stdout !== "string" || typeof stderr !== "string") return null;
  return { exitCode, stdout, stderr, truncated: truncated === true };
}

/** The message of a failed call of a workspace tool: `{ ok: false, error_kind, message }`. */
function messageIn(data: Fields | null): string | null {
  const { error_kind: kind, message } = data ?? {};
  return typeof kind === "string" && typeof message === "string" ? message : null;
}

/** A list of objects as a table: the text is such a list, or an object that contains exactly one. */
function tableOf(text: string, data: Fields | null): Extract<CallOutput, { kind: "table" }> | null {
  const lists = Object.entries(data ?? {}).filter(([, value]) => Array.isArray(value));
  const items = (data === null ? listIn(text) : lists.length === 1 ? lists[0]?.[1] : null) as readonly unknown[] | null;
  if (items == null || !items.every(isObject)) return null;
  const hint = typeof data?.["hint"] === "string" ? data["hint"] : null;
  if (data !== null && lists[0]?.[0] === "entries" && items.every((item) => typeof item["path"] === "string")) {
    const rows = items.map(({ path, type, size_bytes: size }) => [
      `${path}${type === "directory" ? "/" : ""}`,
      typeof size === "number" ? formatBytes(size) : "",
    ]);
    const note = hint ?? (rows.length === 0 ? "The directory is empty." : null);
    return { kind: "table", failed: false, columns: ["File", "Size"], rows, note };
  }
  const [first] = items;
  if (first === undefined) return null;
  const columns = Object.keys(first).slice(0, COLUMNS_MAX);
  if (columns.length === 0) return null;
  const rows = items.slice(0, ROWS_MAX).map((item) => columns.map((name) => cellOf(item[name])));
  const left = items.length - rows.length;
  const note = hint ?? (left > 0 ? `${formatCount(left)} more rows are in the recorded result.` : null);
  return { kind: "table", failed: false, columns, rows, note };
}

function objectIn(text: string): Fields | null {
  const value = parsed(text, "{");
  return isObject(value) ? value : null;
}

function listIn(text: string): readonly unknown[] | null {
  const value = parsed(text, "[");
  return Array.isArray(value) ? value : null;
}

function parsed(text: string, first: "{" | "["): unknown {
  if (text.length > PARSED_CHARACTERS_MAX || !text.trimStart().startsWith(first)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function firstText(given: Fields | null, names: readonly string[]): string | null {
  const value = names.map((name) => given?.[name]).find((each) => typeof each === "string" && each !== "");
  return typeof value === "string" ? value : null;
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > CELL_CHARACTERS_MAX ? `${text.slice(0, CELL_CHARACTERS_MAX)}…` : text;
}

/** A number of bytes in a suitable unit. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
