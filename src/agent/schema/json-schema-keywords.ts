import { sameJson } from "../../internal/json.ts";
import { showValue } from "./json-schema-problem.ts";
import { compilePattern } from "./json-schema-reference.ts";

/** The longest text that patterns are applied to; a longer one is refused, which bounds the time of a slow pattern. */
const PATTERN_TEXT_MAX = 10_000;

type Keywords = Readonly<Record<string, unknown>>;
type Add = (says: string) => void;
/** Deducts steps from the budget of a check. @throws if none are left. */
type Spend = (steps: number) => void;

/** How many characters are read or compared in the time of one step. */
const CHARACTERS_A_STEP = 64;
/** How many characters are counted in one step; counting is slower. */
const CHARACTERS_COUNTED_A_STEP = 16;

const KINDS: Readonly<Record<string, { readonly named: string; readonly fits: (value: unknown) => boolean }>> = {
  string: { named: "a string", fits: (value) => typeof value === "string" },
  number: { named: "a number", fits: (value) => typeof value === "number" },
  integer: { named: "an integer", fits: (value) => Number.isInteger(value) },
  boolean: { named: "a boolean", fits: (value) => typeof value === "boolean" },
  null: { named: "null", fits: (value) => value === null },
  array: { named: "an array", fits: (value) => Array.isArray(value) },
  object: {
    named: "an object",
    fits: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  },
};

/** The valid values of `type`. */
export const TYPE_NAMES: readonly string[] = Object.keys(KINDS);

/** The kinds that `type` asks for if the value is of none of them; otherwise null. */
export function missedType(type: unknown, value: unknown): string | null {
  if (type === undefined) return null;
  const names = (Array.isArray(type) ? type : [type]).filter((name) => typeof name === "string");
  const kinds = names.flatMap((name) => (Object.hasOwn(KINDS, name) ? [KINDS[name]!] : []));
  if (kinds.length === 0 || kinds.some((kind) => kind.fits(value))) return null;
  return kinds.map((kind) => kind.named).join(" or ");
}

/** The values that `const` and `enum` ask for if the value is none of them; otherwise null. */
export function missedChoice(schema: Keywords, value: unknown): string | null {
  if (Object.hasOwn(schema, "const") && !sameJson(schema["const"], value)) return showChoice(schema["const"]);
  const choices = schema["enum"];
  if (!Array.isArray(choices) || choices.some((choice) => sameJson(choice, value))) return null;
  if (choices.length === 1) return showChoice(choices[0]);
  const shown = choices.slice(0, 10).map(showChoice).join(", ");
  if (choices.length === 2) return choices.map(showChoice).join(" or ");
  return `one of ${shown}${choices.length > 10 ? ` and ${choices.length - 10} more` : ""}`;
}

/** Checks the keywords for numbers. */
export function checkNumber(schema: Keywords, value: number, add: Add): void {
  const got = `got ${value}`;
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (typeof minimum === "number" && value < minimum) add(`must be at least ${minimum}, ${got}`);
  if (typeof maximum === "number" && value > maximum) add(`must be at most ${maximum}, ${got}`);
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) {
    add(`must be greater than ${exclusiveMinimum}, ${got}`);
  }
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) {
    add(`must be less than ${exclusiveMaximum}, ${got}`);
  }
  if (typeof multipleOf === "number" && !isMultiple(value, multipleOf)) {
    add(`must be a multiple of ${multipleOf}, ${got}`);
  }
}

/** Checks the keywords for strings. */
export function checkText(schema: Keywords, value: string, add: Add, spend: Spend): void {
  const { minLength, maxLength, pattern } = schema;
  if (typeof minLength === "number" || typeof maxLength === "number") {
    const mustCount = [minLength, maxLength].some((limit) => isWithinReach(limit, value));
    if (mustCount) spend(value.length / CHARACTERS_COUNTED_A_STEP);
    const size = mustCount ? characterCount(value) : value.length;
    checkSize(size, [minLength, maxLength], "character", `got ${showValue(value)}`, add);
  }
  if (typeof pattern === "string" && !matchesPattern(pattern, value)) {
    if (value.length > PATTERN_TEXT_MAX) add(`must be at most ${PATTERN_TEXT_MAX} characters long to be matched`);
    else add(`must match the pattern ${pattern}, got ${showValue(value)}`);
  }
}

/** Checks a number of items, properties or characters. */
export function checkSize(
  size: number,
  [min, max]: readonly [unknown, unknown],
  unit: "character" | "item" | "property",
  got: string,
  add: Add,
): void {
  if (typeof min === "number" && size < min) add(`must have at least ${count(min, unit)}, ${got}`);
  if (typeof max === "number" && size > max) add(`must have at most ${count(max, unit)}, ${got}`);
}

/** Whether a pattern matches a text. An invalid pattern matches everything. */
export function matchesPattern(pattern: string, text: string): boolean {
  const expression = compilePattern(pattern);
  return expression === null || (text.length <= PATTERN_TEXT_MAX && expression.test(text));
}

/** How many steps it takes to read or compare a JSON value. */
export function stepsToRead(value: unknown): number {
  let steps = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const here = waiting.pop();
    steps += 1;
    if (typeof here === "string") steps += here.length / CHARACTERS_A_STEP;
    if (typeof here !== "object" || here === null) continue;
    for (const [key, child] of Object.entries(here)) {
      steps += key.length / CHARACTERS_A_STEP;
      waiting.push(child);
    }
  }
  return steps;
}

/** The index of the first item that occurred before, or -1. */
export function findRepeated(items: readonly unknown[]): number {
  const seen = new Set<string>();
  return items.findIndex((item) => seen.size === seen.add(identify(item)).size);
}

/** A string that is equal exactly for equal values. */
function identify(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(identify).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keyed = value as Record<string, unknown>;
  const parts = Object.keys(keyed).sort();
  return `{${parts.map((key) => `${JSON.stringify(key)}:${identify(keyed[key])}`).join()}}`;
}

function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  if (!Number.isFinite(quotient)) return value % of === 0;
  // 19.99 / 0.01 is not exactly 1999 in binary, but 19.99 must count as a multiple.
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * Number.EPSILON * 4;
}

/** Whether the length in UTF-16 units does not decide if a text exceeds a limit: each character is one or two units. */
function isWithinReach(limit: unknown, text: string): boolean {
  return typeof limit === "number" && limit >= text.length / 2 && limit <= text.length;
}

function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function count(size: number, unit: "character" | "item" | "property"): string {
  if (size === 1) return `1 ${unit}`;
  return `${size} ${unit === "property" ? "properties" : `${unit}s`}`;
}

function showChoice(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? showValue(value) : text;
}
