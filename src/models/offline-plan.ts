import { type Literal, markOf, maskLiterals, soleLiteral, unmask } from "./offline-literals.ts";
import { type OfflineStep, parseStep, REQUEST_VERBS } from "./offline-step.ts";

/** The steps that a message asks for, in rounds, and the sentences that were not understood. */
export interface OfflinePlan {
  readonly rounds: readonly (readonly OfflineStep[])[];
  readonly unclear: readonly string[];
}

/** Maximum steps of one message. */
const STEPS_MAX = 50;
/** A longer sentence is treated as pasted text and not parsed. Quoted parts do not count. */
const SENTENCE_CHARACTERS_MAX = 4000;

/** How many sentences are parsed, and to how many a run of blanks is shortened: more is pasted text. */
const SENTENCES_MAX = 200;
const BLANKS_MAX = 20;

const TOGETHER = /\b(?:at the same time|in parallel|simultaneously)\b[,:]?/i;
const THEN = /,\s*(?:and\s+)?then,?\s+|\s+and\s+then,?\s+|\.\s+then,?\s+/i;
const LIST_MARK = /^\s*(?:\d+[.)]|[-*•])\s+/;
const NEXT_REQUEST = new RegExp(`\\s*,\\s+(?:and\\s+)?(?=${REQUEST_VERBS}\\b)|\\s+and\\s+(?=${REQUEST_VERBS}\\b)`, "i");

/** Parses a message into steps; `parseCall` parses calls of tools by their names. */
export function planOf(
  message: string,
  parseCall: (sentence: string, literals: readonly Literal[]) => OfflineStep | null,
): OfflinePlan {
  const masked = maskLiterals(message);
  const literals = [...masked.literals];
  const parse = (sentence: string): OfflineStep | null => {
    if (sentence.length > SENTENCE_CHARACTERS_MAX) return null;
    return parseCall(sentence, literals) ?? parseStep(sentence, literals);
  };
  const together = TOGETHER.exec(masked.text);
  const lines = (together === null ? masked.text : withoutWords(masked.text, together)).split(/\r?\n/).reverse();
  const steps: OfflineStep[] = [];
  const unclear: string[] = [];
  let sentences = 0;
  while (lines.length > 0 && steps.length < STEPS_MAX && sentences < SENTENCES_MAX) {
    const line = withFewBlanks(lines.pop() ?? "")
      .replace(LIST_MARK, "")
      .trim();
    if (line === "") continue;
    for (const sentence of sentencesOf(withBlock(line, lines, literals, parse))) {
      if (++sentences > SENTENCES_MAX) break;
      const found = stepsOf(sentence, parse);
      if (found.length === 0) unclear.push(unmask(sentence, literals));
      steps.push(...found);
    }
  }
  const taken = steps.slice(0, STEPS_MAX);
  return { rounds: together !== null && taken.length > 0 ? [taken] : taken.map((step) => [step]), unclear };
}

/** Removes the matched words from a text, with the comma and the blanks before them. */
function withoutWords(text: string, { 0: words, index }: RegExpExecArray): string {
  const before = text.slice(0, index).trimEnd();
  return `${before.replace(/[,:]$/, "")} ${text.slice(index + words.length)}`;
}

function withFewBlanks(line: string): string {
  return line.replace(/\s{21,}/g, (blanks) => blanks.slice(0, BLANKS_MAX));
}

/** Joins a line with the lines that it introduces: a code fence, or all lines after a colon. `rest` is in reverse order. */
function withBlock(
  line: string,
  rest: string[],
  literals: Literal[],
  parse: (sentence: string) => OfflineStep | null,
): string {
  const next = rest.at(-1)?.trim() ?? "";
  if (soleLiteral(next, literals) !== null && parsesAtEnd(`${line} ${next}`, parse)) {
    rest.pop();
    return `${line} ${next}`;
  }
  if (!line.endsWith(":") || rest.every((each) => each.trim() === "")) return line;
  const index = literals.length;
  const joined = `${line} ${markOf(literals, { raw: "", says: "", language: "" })}`;
  if (!parsesAtEnd(joined, parse)) return line;
  const block = unmask(rest.toReversed().join("\n"), literals);
  literals[index] = { raw: block, says: block, language: "" };
  rest.length = 0;
  return joined;
}

function parsesAtEnd(line: string, parse: (sentence: string) => OfflineStep | null): boolean {
  const last = sentencesOf(line).at(-1);
  return last !== undefined && stepsOf(last, parse).length > 0;
}

function sentencesOf(line: string): readonly string[] {
  // A line after a dollar sign is a shell command and is not split.
  return line.startsWith("$ ") ? [line] : line.split(THEN).filter((sentence) => sentence.trim() !== "");
}

/** Splits a sentence at commas and "and" into steps; if a part is not understood, parses the sentence as one step. */
function stepsOf(sentence: string, parse: (sentence: string) => OfflineStep | null): readonly OfflineStep[] {
  if (!sentence.startsWith("$ ")) {
    const parts = sentence.split(NEXT_REQUEST).map(parse);
    if (parts.length > 1 && parts.every((part) => part !== null)) return parts;
  }
  const whole = parse(sentence);
  return whole === null ? [] : [whole];
}
