import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { SessionError, show } from "../session/errors.ts";
import { linesOf, textOfBytes } from "./file-text.ts";
import { showNearestLines } from "./nearest-lines.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

const LINE_NUMBERS_SHOWN = 5;

/** Replaces a part of a text file. It refuses to guess: the old text must be there, and only once unless all are meant. */
export const editWorkspaceFile: Tool = defineTool({
  name: "edit_workspace_file",
  description:
    "Replaces old_text by new_text in a text file of the workspace. old_text must be copied exactly, with its whitespace, " +
    "and must occur once in the file, unless replace_all is set.",
  parameters: {
    type: "object",
    properties: {
      path: PATH_PARAMETER,
      old_text: { type: "string", minLength: 1, description: "The text to replace, as it stands in the file." },
      new_text: { type: "string", description: "The text to put in its place; empty to remove it." },
      replace_all: { type: "boolean", description: "Replaces every occurrence (default: false)." },
    },
    required: ["path", "old_text", "new_text"],
    additionalProperties: false,
  },
  idempotent: false,
  effects: "writes",
  sandboxed: true,
  resourceKey: ({ path }) => pathKey(path),
  async execute({ path, old_text, new_text, replace_all: all = false }, context) {
    if (old_text === new_text) throw refusal("old_text and new_text are the same, so nothing would change.");
    const sandbox = await context.requireSandbox();
    const text = textOfBytes(await sandbox.readFile(path));
    if (text === null) throw refusal(`${show(path)} is not a UTF-8 text file, so it cannot be edited as text.`);
    const [wanted, replacement] = withEndingsOf(text, old_text, new_text);
    const places = placesOf(text, wanted, all);
    if (places.length === 0) throw refusal(notFound(path, text, wanted));
    if (places.length > 1 && !all) throw refusal(ambiguous(path, text, places));
    context.signal.throwIfAborted();
    await sandbox.writeFile(path, replaceAt(text, places, wanted.length, replacement));
    return { path, replacements: places.length, first_line: lineAt(text, places[0] ?? 0) };
  },
});

/** Models write bare line feeds; in a file whose lines all end in a carriage return and one, these are meant. */
function withEndingsOf(text: string, ...written: readonly [string, string]): readonly [string, string] {
  const everyLineHasBoth = text.includes("\r\n") && !/(?<!\r)\n/.test(text);
  if (!everyLineHasBoth || written.some((each) => each.includes("\r"))) return written;
  return [written[0].replaceAll("\n", "\r\n"), written[1].replaceAll("\n", "\r\n")];
}

/** Where a text occurs; overlapping places count too when one is looked for, since it is then not clear which is meant. */
function placesOf(text: string, wanted: string, apart: boolean): number[] {
  const places: number[] = [];
  const step = apart ? wanted.length : 1;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) places.push(at);
  return places;
}

function replaceAt(text: string, places: readonly number[], length: number, replacement: string): string {
  const kept = places.map((place, index) => text.slice(index === 0 ? 0 : (places[index - 1] ?? 0) + length, place));
  return [...kept, text.slice((places.at(-1) ?? 0) + length)].join(replacement);
}

function notFound(path: string, text: string, wanted: string): string {
  const said = `old_text was not found in ${show(path)}.`;
  const nearest = showNearestLines(linesOf(text), linesOf(wanted));
  if (nearest === null) return `${said} Nothing in the file looks like it; read the file first.`;
  return `${said} Copy it exactly, with its whitespace. The nearest lines, with their numbers, are:\n${nearest}`;
}

function ambiguous(path: string, text: string, places: readonly number[]): string {
  const shown = places.slice(0, LINE_NUMBERS_SHOWN).map((place) => lineAt(text, place));
  const more = places.length > LINE_NUMBERS_SHOWN ? " and further down" : "";
  return (
    `old_text occurs ${places.length} times in ${show(path)}, at the lines ${shown.join(", ")}${more}. ` +
    "Add the lines around it until it occurs once, or set replace_all."
  );
}

function lineAt(text: string, place: number): number {
  return text.slice(0, place).split("\n").length;
}

function refusal(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
