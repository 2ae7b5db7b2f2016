import type { JsonValue } from "../../internal/json.ts";

/** Whether a value is an object with keys of its own, as schemas are. */
export function isKeyed(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a reference such as `#/$defs/item` points at in the schema it stands in, or undefined when nothing is there. */
export function resolveReference(root: unknown, reference: string): JsonValue | undefined {
  if (!reference.startsWith("#")) return undefined;
  let found: unknown = root;
  for (const step of stepsOf(reference.slice(1)) ?? [null]) {
    if (step === null || typeof found !== "object" || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<string, unknown>)[step];
  }
  return found as JsonValue;
}

function stepsOf(pointer: string): string[] | null {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) return null;
  try {
    const steps = decodeURIComponent(pointer).slice(1).split("/");
    return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  } catch {
    return null;
  }
}

const patterns = new Map<string, RegExp | null>();
const PATTERNS_KEPT_MAX = 1000;

/** The pattern as an expression, or null when it is none. */
export function compilePattern(pattern: string): RegExp | null {
  const known = patterns.get(pattern);
  if (known !== undefined) return known;
  // Patterns are Unicode ones, but many in use escape more than those allow.
  const compiled = tryCompile(pattern, "u") ?? tryCompile(pattern, "");
  if (patterns.size >= PATTERNS_KEPT_MAX) patterns.clear();
  patterns.set(pattern, compiled);
  return compiled;
}

function tryCompile(pattern: string, flags: string): RegExp | null {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return null;
  }
}
