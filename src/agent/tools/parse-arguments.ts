import { findHazard } from "../schema/json-schema.ts";
import { showValue } from "../schema/json-schema-problem.ts";
import type { CheckedArguments } from "./tool.ts";

const EXCERPT_BEFORE = 30;
const EXCERPT_AFTER = 20;

/**
 * Parses the arguments that a model wrote. Returns them, or a sentence that tells the model what to fix, in which they
 * are called `name`. An empty text means no arguments; values other than objects are refused, and so are unsafe ones.
 */
export function parseArguments(text: string, name = "arguments"): CheckedArguments {
  if (text.trim() === "") return { ok: true, value: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: describeBreak(name, text, error as SyntaxError) };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, problem: `${name} must be a JSON object, got ${showValue(value)}.` };
  }
  const hazard = findHazard(value, name);
  return hazard === null ? { ok: true, value } : { ok: false, problem: hazard };
}

function describeBreak(name: string, text: string, { message }: SyntaxError): string {
  const offset = /at position (\d+)/.exec(message)?.[1];
  const near = offset === undefined ? "" : `, near ${excerpt(text, Number(offset))}`;
  return `${name} cannot be read as JSON: ${message}${near}.`;
}

/** The text around an offset, quoted so that it is distinct from the surrounding sentence. */
function excerpt(text: string, offset: number): string {
  const from = Math.max(0, offset - EXCERPT_BEFORE);
  const to = Math.min(text.length, offset + EXCERPT_AFTER);
  return JSON.stringify(`${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`);
}
