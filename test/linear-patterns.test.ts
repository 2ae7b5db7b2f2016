import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "rolldown/experimental";
import { describe, expect, test } from "vitest";
import { runWithin, TookTooLong } from "../src/agent/schema/run-within.ts";

// A quadratic match takes longer than the limit at these lengths, a linear one a thousandth of it. A pattern that
// exceeds the first limit is tried again on a longer text with a higher one, so that a busy machine does not count as a
// slow pattern.
const TRIALS = [
  { characters: 10_000, limitMs: 20 },
  { characters: 100_000, limitMs: 1000 },
] as const;

/** The repeated parts: characters that patterns name, alone and between others. */
const UNITS = [
  ...[
    " ",
    "\n",
    "\r\n",
    "\t",
    "a",
    "0",
    "_",
    "-",
    ".",
    ",",
    ":",
    "/",
    "\\",
    '"',
    "'",
    "`",
    "“",
    "=",
    "@",
    "<",
    "(",
    "[",
  ],
  ...[
    "{",
    "#",
    "~",
    "*",
    "%",
    "!",
    "&",
    "+",
    "é",
    "\ud83d",
    "\ue000",
    "a ",
    "a.",
    "a\n",
    " \n",
    "a:",
    "```",
    "](",
    '\\"',
  ],
];
const WORDS_MAX = 8;

/**
 * Files whose patterns never see a long text: the offline model reads sentences of at most 4,000 characters with few blanks
 * in a row (offline-hostile.test.ts), and the conformance cases read their own texts.
 */
const SHORT: readonly string[] = ["src/models/offline-plan.ts", "src/models/offline-step.ts", "src/testing/"];

interface FoundPattern {
  readonly pattern: RegExp;
  readonly file: string;
}

/** Every regular expression that a file of ours writes as a literal. */
function patternsOf(directory: string): FoundPattern[] {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return files
    .filter((file) => /\.tsx?$/.test(file) && !/\.test\.ts$|node_modules/.test(file))
    .flatMap((file) => {
      const path = join(directory, file);
      const found: FoundPattern[] = [];
      const waiting: unknown[] = [parseSync(path, readFileSync(path, "utf8")).program];
      for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
        if (typeof node !== "object" || node === null) continue;
        const { regex } = node as { readonly regex?: { readonly pattern: string; readonly flags: string } };
        if (regex !== undefined) found.push({ pattern: new RegExp(regex.pattern, regex.flags), file: path });
        waiting.push(...Object.values(node).filter((child) => typeof child === "object" && child !== null));
      }
      return found;
    });
}

/** Words and signs that a pattern names, so that a text gets as far into it as it can. */
function wordsIn({ source }: RegExp): string[] {
  const plain = source
    .replace(/\(\?<\w+>/g, "(")
    .replaceAll("\\n", "\n")
    .replaceAll("\\s+", " ")
    .replace(/\\[a-zA-Z]/g, " ")
    .replaceAll("\\", "");
  const words = plain.match(/<[\w-]+>\n?|[A-Za-z][\w. ]+|[^\w\s()|?*+[\]^$]{2,}/g) ?? [];
  return [...new Set(words)].slice(0, WORDS_MAX);
}

/**
 * A text on which a pattern takes more than linear time, as its beginning and its repeated part; null if none is found.
 */
function slowTextFor(pattern: RegExp): string | null {
  const words = wordsIn(pattern);
  const starts = ["", "a", ...words, ...words.map((word) => `${word} `)];
  for (const unit of [...UNITS, ...words, ...words.map((word) => `${word} `)]) {
    if (TRIALS.every((trial) => isSlow(pattern, starts, unit, trial))) return JSON.stringify({ unit, starts });
  }
  return null;
}

function isSlow(
  pattern: RegExp,
  starts: readonly string[],
  unit: string,
  { characters, limitMs }: (typeof TRIALS)[number],
): boolean {
  const repeated = unit.repeat(Math.ceil(characters / unit.length));
  try {
    runWithin(limitMs, () => {
      for (const start of starts) {
        const text = `${start}${repeated}\u0001`;
        pattern.lastIndex = 0;
        if (pattern.global) text.replace(pattern, "");
        else pattern.test(text);
      }
    });
    return false;
  } catch (error) {
    if (!(error instanceof TookTooLong)) throw error;
    return true;
  }
}

describe("a regular expression takes time linear in the length of its text", () => {
  test("and one that does not is found", () => {
    for (const slow of [/\s+$/, /\s+and\s+then/, /<a>\n[\s\S]*<\/a>/, /\bgive\b[^.]*\bsummary\b/]) {
      expect(slowTextFor(slow), String(slow)).not.toBeNull();
    }
  });

  test.for(["src", "studio/src"])("every one in %s", { timeout: 300_000 }, (directory) => {
    const seen = new Set<string>();
    const slow: string[] = [];
    for (const { pattern, file } of patternsOf(directory)) {
      if (seen.has(String(pattern)) || SHORT.some((path) => file.startsWith(path))) continue;
      seen.add(String(pattern));
      const text = slowTextFor(pattern);
      if (text !== null) slow.push(`${file}: ${pattern} on ${text}`);
    }
    expect(slow).toEqual([]);
    expect(seen.size).toBeGreaterThan(5);
  });
});
