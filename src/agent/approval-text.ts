import type { JsonValue } from "../internal/json.ts";
import type { Approval } from "../session/log/run-event.ts";

/** The arguments of a call in parts for display; together, the parts are complete. */
export interface CallParts {
  /** The kind of `text`. */
  readonly kind: "command" | "program" | "content" | "edit" | "arguments";
  /** The command, the program, or the content to be written; otherwise the arguments as JSON. */
  readonly text: string;
  /** The file that the call affects; null if there is none. */
  readonly path: string | null;
  /** All other arguments as JSON; null if there are none. */
  readonly rest: string | null;
}

/** Characters that are invisible or look like others: control characters, direction marks, fillers, unusual spaces. */
const UNSEEN = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const EMPTY_LINES = /\n(?:[ \t]*\n){4,}/g;
const BLANKS = / {24,}|\t{8,}/g;

/** Splits a call's arguments into parts. Unexpected values are shown unchanged and never left out. */
export function callParts({ arguments: given }: Pick<Approval, "arguments">): CallParts {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return plain(given);
  const all = given as Readonly<Record<string, JsonValue>>;
  const { command, code, path, content, old_text: before, new_text: after } = all;
  if (isText(command)) return parts("command", command, all, ["command"]);
  if (isText(code)) return parts("program", code, all, ["code"]);
  if (isText(path) && isText(content)) return parts("content", content, all, ["path", "content"]);
  if (isText(path) && isText(before) && isText(after)) {
    const lines = [...marked("- ", before), ...marked("+ ", after)].join("\n");
    return parts("edit", lines, all, ["path", "old_text", "new_text"]);
  }
  return plain(given);
}

/** Makes every character of a text visible: invisible ones, and those that would move the rest out of view. */
export function shownText(text: string): string {
  return text
    .replace(UNSEEN, (character) => `[U+${hex(character)}]`)
    .replace(EMPTY_LINES, (run) => `\n[${run.split("\n").length - 2} empty lines]\n`)
    .replace(BLANKS, (run) => ` [${run.length} ${run[0] === " " ? "spaces" : "tabs"}] `);
}

/** Where a call would act and what it could reach from there, as part of a sentence. */
export function reachText({ effects, reach }: Pick<Approval, "effects" | "reach">): string {
  if (reach === null) return "nothing is known of what it can reach";
  const where = reach.directory === null ? "not on this machine" : `in ${shownText(reach.directory)}`;
  // File tools are confined to their directory, whatever commands can reach.
  if (effects !== "commands") return where;
  const network = reach.network ? "network" : "no network";
  return `${where} (${reach.isolated ? "isolated" : "not isolated"}, ${network})`;
}

function parts(
  kind: CallParts["kind"],
  text: string,
  all: Readonly<Record<string, JsonValue>>,
  shown: readonly string[],
): CallParts {
  const others = Object.entries(all).filter(([name]) => !shown.includes(name));
  const rest = others.length === 0 ? null : JSON.stringify(Object.fromEntries(others), null, 2);
  const { path } = all;
  return { kind, text, path: shown.includes("path") && isText(path) ? path : null, rest };
}

function plain(given: JsonValue): CallParts {
  return { kind: "arguments", text: JSON.stringify(given, null, 2) ?? "", path: null, rest: null };
}

function marked(mark: string, text: string): string[] {
  return text.split("\n").map((line) => `${mark}${line}`);
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string";
}

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
