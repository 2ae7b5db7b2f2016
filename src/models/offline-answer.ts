import type { JsonValue } from "../internal/json.ts";
import type { ToolSchema } from "../session/log/setup.ts";
import { textOf } from "../session/message.ts";
import type { OfflineProgress, OfflineResult } from "./offline-progress.ts";
import { cutLine } from "./offline-summary.ts";
import { parseJsonObject } from "./parse-json-object.ts";

const RESULT_CHARACTERS_MAX = 300;
const SENTENCES_MAX = 12;

const EXAMPLES: Readonly<Record<string, string>> = {
  list_workspace_files: "list the files",
  read_workspace_file: "read notes.txt",
  write_workspace_file: "write hello to notes.txt",
  edit_workspace_file: "replace hello with goodbye in notes.txt",
  workspace_path_exists: "does notes.txt exist?",
  run_shell_command: "run ls -l",
  run_code: "run this javascript: console.log(1 + 1)",
};

/** The text of an offline model that has no (more) calls to make: the results of its calls, or what it can do. */
export function answerTo(progress: OfflineProgress, question: string, tools: readonly ToolSchema[]): string {
  const { results, skipped, unavailable, unclear } = progress;
  const told = results.slice(0, SENTENCES_MAX).map(sentenceOf);
  if (results.length > told.length) told.push(`And ${results.length - told.length} more calls.`);
  if (skipped.length > 0) told.push(`So I did not go on to: ${list(skipped.map(({ said }) => said))}.`);
  for (const { tool, said } of unavailable) told.push(`For "${cutLine(said)}" I would need the tool ${tool}.`);
  if (told.length === 0) return [`I am offline. You said: ${cutLine(question)}`, ...abilities(tools)].join("\n");
  if (unclear.length > 0) {
    const more = unclear.length > SENTENCES_MAX ? ` and ${unclear.length - SENTENCES_MAX} more` : "";
    told.push(`I am offline and did not understand: ${list(unclear.slice(0, SENTENCES_MAX))}${more}.`);
  }
  return told.join("\n");
}

function abilities(tools: readonly ToolSchema[]): readonly string[] {
  const examples = tools.map(({ name }) => EXAMPLES[name] ?? `call ${name} with {…}`);
  return examples.length === 0
    ? []
    : [`I understand requests such as: ${examples.map((text) => `"${text}"`).join(", ")}.`];
}

function sentenceOf({ call, message }: OfflineResult): string {
  const args = parseJsonObject(call.arguments) ?? {};
  const text = textOf(message.content);
  const subject = subjectOf(call.name, args);
  if (message.isError === true) return `${subject} failed: ${failureOf(text)}`;
  const path = String(args.path ?? "");
  switch (call.name) {
    case "write_workspace_file":
      return `I wrote ${path}.`;
    case "edit_workspace_file":
      return `I edited ${path}.`;
    case "read_workspace_file":
      return `${path} says: ${quote(text)}`;
    case "list_workspace_files":
      return listed(text);
    case "workspace_path_exists":
      return `${path} ${exists(text) ? "exists" : "does not exist"}.`;
    case "run_shell_command":
    case "run_code":
      return `${subject} ${printed(text)}`;
    default:
      return `${call.name} answered: ${quote(text)}`;
  }
}

function subjectOf(name: string, args: Readonly<Record<string, JsonValue>>): string {
  switch (name) {
    case "write_workspace_file":
      return `Writing ${args.path}`;
    case "edit_workspace_file":
      return `Editing ${args.path}`;
    case "read_workspace_file":
      return `Reading ${args.path}`;
    case "list_workspace_files":
      return "Listing the files";
    case "run_shell_command":
      return `\`${cutLine(String(args.command))}\``;
    case "run_code":
      return `The ${args.language} code`;
    default:
      return name;
  }
}

/** Describes the output of a process, given as text or as JSON with streams and an exit code. */
function printed(text: string): string {
  const output = parseJsonObject(text);
  const stdout = output === null ? text : String(output.stdout ?? output.output ?? "");
  const stderr = String(output?.stderr ?? "");
  const exitCode = Number(output?.exit_code ?? output?.exitCode ?? 0);
  const shown = [stdout, stderr].filter((stream) => stream.trim() !== "").join("\n");
  const said = shown === "" ? "printed nothing" : `printed: ${quote(shown)}`;
  return exitCode === 0 ? (shown === "" ? `${said}.` : said) : `ended with exit code ${exitCode} and ${said}`;
}

function listed(text: string): string {
  const entries = parseJsonObject(text)?.entries;
  if (!Array.isArray(entries)) return `The files: ${quote(text)}`;
  const names = entries.map((entry: JsonValue) => {
    const { path, type } = entry as Readonly<Record<string, JsonValue>>;
    return type === "directory" ? `${path}/` : String(path);
  });
  return names.length === 0 ? "There are no files." : `The files: ${quote(names.join(", "))}`;
}

function exists(text: string): boolean {
  const answer = parseJsonObject(text);
  return answer === null ? /^(?:true|yes)\b|\bexists\b/i.test(text) : answer.exists === true;
}

function failureOf(text: string): string {
  const error = parseJsonObject(text);
  if (typeof error?.message !== "string") return quote(text);
  return `${quote(error.message)}${typeof error.error_kind === "string" ? ` (${error.error_kind})` : ""}`;
}

function quote(text: string): string {
  return cutLine(text, RESULT_CHARACTERS_MAX);
}

function list(sentences: readonly string[]): string {
  return sentences.map((sentence) => `"${cutLine(sentence)}"`).join(", ");
}
