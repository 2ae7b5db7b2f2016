import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { SessionError, show } from "../session/errors.ts";
import { linesOf, textOfBytes } from "./read-workspace-file.ts";
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
      new_text: { type: "string", description: "The text to put there instead; empty to remove it." },
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
    const offsets = offsetsOf(text, wanted, all);
    if (offsets.length === 0) throw refusal(notFound(path, text, wanted));
    if (offsets.length > 1 && !all) throw refusal(ambiguous(path, text, offsets));
    context.signal.throwIfAborted();
    await sandbox.writeFile(path, replaceAt(text, offsets, wanted.length, replacement));
    return { path, replacements: offsets.length, first_line: lineAt(text, offsets[0] ?? 0) };
  },
});

/** Models write bare line feeds; in a file whose lines all end in a carriage return and one, these are meant. */
function withEndingsOf(text: string, ...written: readonly [string, string]): readonly [string, string] {
  const everyLineHasBoth = text.includes("\r\n") && !/(?<!\r)\n/.test(text);
  if (!everyLineHasBoth || written.some((each) => each.includes("\r"))) return written;
  return [written[0].replaceAll("\n", "\r\n"), written[1].replaceAll("\n", "\r\n")];
}

/** Where a text occurs; overlapping ones count too when one is looked for, since it is then not clear which is meant. */
function offsetsOf(text: string, wanted: string, apart: boolean): number[] {
  const offsets: number[] = [];
  const step = apart ? wanted.length : 1;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) offsets.push(at);
  return offsets;
}

function replaceAt(text: string, offsets: readonly number[], length: number, replacement: string): string {
  const kept = offsets.map((offset, index) => text.slice(index === 0 ? 0 : (offsets[index - 1] ?? 0) + length, offset));
  return [...kept, text.slice((offsets.at(-1) ?? 0) + length)].join(replacement);
}

function notFound(path: string, text: string, wanted: string): string {
  const said = `old_text was not found in ${show(path)}.`;
  const nearest = showNearestLines(linesOf(text), linesOf(wanted));
  if (nearest === null) return `${said} Nothing in the file looks like it; read the file first.`;
  return `${said} Copy it exactly, with its whitespace. The nearest lines, with their numbers, are:\n${nearest}`;
}

function ambiguous(path: string, text: string, offsets: readonly number[]): string {
  const shown = offsets.slice(0, LINE_NUMBERS_SHOWN).map((offset) => lineAt(text, offset));
  const more = offsets.length > LINE_NUMBERS_SHOWN ? " and further down" : "";
  return (
    `old_text occurs ${offsets.length} times in ${show(path)}, at the lines ${shown.join(", ")}${more}. ` +
    "Add the lines around it until it occurs once, or set replace_all."
  );
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

function refusal(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}

const LINES_SEARCHED_MAX = 50_000;
const CHARACTERS_COMPARED_MAX = 200;
const LINES_SHOWN_MAX = 12;
const LIKENESS_MIN = 0.4;

/** The lines of a text that are most like the wanted ones, with their numbers, or null when none are alike. */
function showNearestLines(lines: readonly string[], wanted: readonly string[]): string | null {
  // The longest line is the one least likely to be alike to another by chance.
  const anchor = wanted.reduce(
    (best, line, index) => (line.trim().length > (wanted[best] ?? "").trim().length ? index : best),
    0,
  );
  const compare = likenessTo((wanted[anchor] ?? "").trim());
  let best = { likeness: LIKENESS_MIN, equal: -1, start: -1 };
  for (const [index, line] of lines.slice(0, LINES_SEARCHED_MAX).entries()) {
    const likeness = compare(line.trim());
    if (likeness < best.likeness) continue;
    const start = index - anchor;
    const equal = wanted.filter((each, offset) => each.trim() === lines[start + offset]?.trim()).length;
    if (likeness > best.likeness || equal > best.equal) best = { likeness, equal, start };
  }
  if (best.equal < 0) return null;
  const from = Math.max(0, best.start);
  const to = Math.min(best.start + wanted.length, from + LINES_SHOWN_MAX);
  return lines
    .slice(from, Math.max(to, from + 1))
    .map((line, index) => `${from + index + 1}: ${line.slice(0, CHARACTERS_COMPARED_MAX)}`)
    .join("\n");
}

/** How much of its pairs of characters another text shares with this one, from 0 to 1. */
function likenessTo(text: string): (other: string) => number {
  const pairs = pairsOf(text);
  return (other) => {
    if (other === text) return 1;
    const otherPairs = pairsOf(other);
    let shared = 0;
    for (const [pair, count] of otherPairs.counts) shared += Math.min(count, pairs.counts.get(pair) ?? 0);
    const total = pairs.total + otherPairs.total;
    return total === 0 ? 0 : (2 * shared) / total;
  };
}

function pairsOf(text: string): { readonly counts: ReadonlyMap<string, number>; readonly total: number } {
  const counts = new Map<string, number>();
  const end = Math.min(text.length, CHARACTERS_COMPARED_MAX) - 1;
  for (let index = 0; index < end; index++) {
    const pair = text.slice(index, index + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: Math.max(0, end) };
}
