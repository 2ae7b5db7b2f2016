import { findJsonBreak } from "./find-json-break.ts";
import { findHazard } from "./json-schema.ts";
import { showValue } from "./json-schema-problem.ts";
import type { CheckedArguments } from "./tool.ts";

const EXCERPT_BEFORE = 30;
const EXCERPT_AFTER = 20;

/**
 * The arguments that a model wrote as text, or a sentence that tells it what to put right. No text at all means no
 * arguments; anything but an object is refused, and so is what no tool could take safely.
 */
export function parseArguments(text: string): CheckedArguments {
  if (text.trim() === "") return { ok: true, value: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, problem: describeBreak(text) };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, problem: `arguments must be a JSON object, got ${showValue(value)}.` };
  }
  const hazard = findHazard(value);
  return hazard === null ? { ok: true, value } : { ok: false, problem: hazard };
}

function describeBreak(text: string): string {
  const found = findJsonBreak(text);
  if (found === null) return "arguments are not JSON; send one JSON object.";
  const { offset, expected } = found;
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - before.lastIndexOf("\n");
  if (offset >= text.length) {
    return `arguments are not JSON: they end at line ${line}, column ${column}, where ${expected} is missing, after ${excerpt(text, offset)}.`;
  }
  return `arguments are not JSON: line ${line}, column ${column} should be ${expected}, near ${excerpt(text, offset)}.`;
}

/** The text around an offset, quoted so that it cannot be taken for the sentence it stands in. */
function excerpt(text: string, offset: number): string {
  const from = Math.max(0, offset - EXCERPT_BEFORE);
  const to = Math.min(text.length, offset + EXCERPT_AFTER);
  return JSON.stringify(`${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`);
}
