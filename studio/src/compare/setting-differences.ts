import type { Settings } from "../../../src/session/log/settings.ts";

/** A value that differs between two branches, as text; null where a side lacks it. */
export interface ValueDifference {
  readonly name: string;
  readonly left: string | null;
  readonly right: string | null;
}

/** The compared settings: the variables and the system prompt. */
export type ComparedSettings = Pick<Settings, "variables" | "systemPrompt">;

type Values = Readonly<Record<string, unknown>>;

/** The name of the system prompt in the list; a variable's name is never shown like this. */
const SYSTEM_PROMPT = "System prompt";

/** The values that differ, by name. */
export function differencesOf(ofLeft: ComparedSettings, ofRight: ComparedSettings): readonly ValueDifference[] {
  const [left, right] = [valuesOf(ofLeft), valuesOf(ofRight)];
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort();
  return names
    .map((name) => ({ name, left: textOf(left, name), right: textOf(right, name) }))
    .filter((each) => each.left !== each.right);
}

function valuesOf({ variables, systemPrompt }: ComparedSettings): Values {
  return systemPrompt === null ? variables : { [SYSTEM_PROMPT]: systemPrompt, ...variables };
}

function textOf(values: Values, name: string): string | null {
  if (!Object.hasOwn(values, name)) return null;
  return JSON.stringify(sorted(values[name]), null, 2) ?? null;
}

/** Sorts the keys of objects, so that their order does not count as a difference. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(keys.map(([key, inner]) => [key, sorted(inner)]));
}
