import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { SessionError, show } from "../session/errors.ts";
import { WorkSlices } from "../internal/work-slices.ts";
import { isText, withFileBytes } from "./workspace-bytes.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

const LINE_NUMBERS_SHOWN = 5;
/** The largest file that is edited, and the longest text after an edit. */
const EDITED_BYTES_MAX: number = 8 * 1024 * 1024;
const RESULT_CHARACTERS_MAX: number = 16 * 1024 * 1024;
const REPLACEMENTS_MAX = 100_000;
/** How many characters are compared before checking whether to yield to the event loop. */
const STEPS_A_PAUSE = 65_536;

/** Replaces a part of a text file. The old text must occur exactly once, unless all occurrences are to be replaced. */
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
    const limits = { bytesMax: EDITED_BYTES_MAX, signal: context.signal };
    return withFileBytes(sandbox, path, limits, async (bytes) => {
      if (!isText(bytes)) throw refusal(`${show(path)} is not a UTF-8 text file, so it cannot be edited as text.`);
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
      const [wanted, replacement] = withEndingsOf(text, old_text, new_text);
      const { offsets, total } = await findText(text, wanted, all);
      if (total === 0) throw refusal(await notFound(path, text, wanted));
      if (total > 1 && !all) throw refusal(ambiguous(path, text, offsets, total));
      checkResult(path, text.length + total * (replacement.length - wanted.length), total);
      context.signal.throwIfAborted();
      await sandbox.writeFile(path, replaceAt(text, offsets, wanted.length, replacement));
      return { path, replacements: total, first_line: lineAt(text, offsets[0] ?? 0) };
    });
  },
});

/** Models write `\n`. In a file whose lines all end in `\r\n`, converts their texts to `\r\n`. */
function withEndingsOf(text: string, ...written: readonly [string, string]): readonly [string, string] {
  const everyLineHasBoth = text.includes("\r\n") && !/(?<!\r)\n/.test(text);
  if (!everyLineHasBoth || written.some((each) => each.includes("\r"))) return written;
  return [written[0].replaceAll("\n", "\r\n"), written[1].replaceAll("\n", "\r\n")];
}

/**
 * Finds the occurrences of a text: all of them if all are to be replaced, else the first few. When exactly one is expected,
 * overlapping occurrences count as well, because it is unclear which one is meant.
 *
 * Takes linear time (Knuth-Morris-Pratt): `indexOf` can take quadratic time for a long, repetitive text.
 */
async function findText(
  text: string,
  wanted: string,
  apart: boolean,
): Promise<{ readonly offsets: readonly number[]; readonly total: number }> {
  const slices = new WorkSlices();
  const borders = new Int32Array(wanted.length + 1).fill(-1);
  for (let [at, border] = [0, -1]; at < wanted.length; ) {
    while (border >= 0 && wanted.charCodeAt(at) !== wanted.charCodeAt(border)) border = borders[border] ?? -1;
    borders[++at] = ++border;
    if (at % STEPS_A_PAUSE === 0) await slices.pause();
  }
  const offsets: number[] = [];
  let [matched, total] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    while (matched >= 0 && text.charCodeAt(at) !== wanted.charCodeAt(matched)) matched = borders[matched] ?? -1;
    matched += 1;
    if (matched === wanted.length) {
      total += 1;
      if (offsets.length < (apart ? REPLACEMENTS_MAX : LINE_NUMBERS_SHOWN)) offsets.push(at + 1 - wanted.length);
      matched = apart ? 0 : (borders[matched] ?? 0);
    }
    if (at % STEPS_A_PAUSE === 0) await slices.pause();
  }
  return { offsets, total };
}

function checkResult(path: string, characters: number, replacements: number): void {
  if (replacements > REPLACEMENTS_MAX) {
    throw refusal(
      `old_text occurs ${replacements} times in ${show(path)}, and at most ${REPLACEMENTS_MAX} are replaced at once; ` +
        "use run_shell_command.",
    );
  }
  if (characters <= RESULT_CHARACTERS_MAX) return;
  throw refusal(
    `${show(path)} would have ${characters} characters; edit makes no file of over ${RESULT_CHARACTERS_MAX}.`,
  );
}

function replaceAt(text: string, offsets: readonly number[], length: number, replacement: string): string {
  const kept = offsets.map((offset, index) => text.slice(index === 0 ? 0 : (offsets[index - 1] ?? 0) + length, offset));
  return [...kept, text.slice((offsets.at(-1) ?? 0) + length)].join(replacement);
}

async function notFound(path: string, text: string, wanted: string): Promise<string> {
  const said = `old_text was not found in ${show(path)}.`;
  const nearest = await showNearestLines(firstLines(text, LINES_SEARCHED_MAX), firstLines(wanted, WANTED_LINES_MAX));
  if (nearest === null) return `${said} Nothing in the file looks like it; read the file first.`;
  return `${said} Copy it exactly, with its whitespace. The nearest lines, with their numbers, are:\n${nearest}`;
}

function ambiguous(path: string, text: string, offsets: readonly number[], total: number): string {
  const shown = offsets.map((offset) => lineAt(text, offset));
  const more = total > LINE_NUMBERS_SHOWN ? " and further down" : "";
  return (
    `old_text occurs ${total} times in ${show(path)}, at the lines ${shown.join(", ")}${more}. ` +
    "Add the lines around it until it occurs once, or set replace_all."
  );
}

function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

function refusal(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}

const LINES_SEARCHED_MAX = 50_000;
const WANTED_LINES_MAX = 200;
const LINE_CHARACTERS_MAX = 1000;
const CHARACTERS_COMPARED_MAX = 200;
const LINES_SHOWN_MAX = 12;
const LIKENESS_MIN = 0.4;

/** The first lines of a text, each cut to the length that is compared and shown. */
function firstLines(text: string, max: number): string[] {
  const lines: string[] = [];
  for (let start = 0; start < text.length && lines.length < max; ) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    lines.push(text.slice(start, Math.min(end, start + LINE_CHARACTERS_MAX)));
    start = end + 1;
  }
  return lines;
}

/** The lines that are most similar to the wanted ones, with their numbers; null if none is similar. */
async function showNearestLines(lines: readonly string[], wanted: readonly string[]): Promise<string | null> {
  const slices = new WorkSlices();
  const bare = lines.map((line) => line.trim());
  const bareWanted = wanted.map((line) => line.trim());
  // Compare by the longest line: it is the least likely to be similar to others by chance.
  const anchor = bareWanted.reduce(
    (best, line, index) => (line.length > (bareWanted[best] ?? "").length ? index : best),
    0,
  );
  const compare = likenessTo(bareWanted[anchor] ?? "");
  let best = { likeness: LIKENESS_MIN, equal: -1, start: -1 };
  for (const [index, line] of bare.entries()) {
    await slices.pause();
    const likeness = compare(line);
    if (likeness < best.likeness) continue;
    const start = index - anchor;
    const equal = bareWanted.filter((each, offset) => each === bare[start + offset]).length;
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

/** Returns a function that measures the similarity of a text to this one, by shared pairs of characters, from 0 to 1. */
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
