import type { Client, SessionView } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { TreeNodeView } from "skein/client";

/** What a branch has set at its end. */
export type Values = Readonly<Record<string, unknown>>;

/** A value that two branches have different, as text; null where a side has none. */
export interface ValueDifference {
  readonly name: string;
  readonly left: string | null;
  readonly right: string | null;
}

/** How many changes of variables are read of one path; older ones than these are not looked at. */
const CHANGES_MAX = 200;
/** Not a name that a variable could be shown by. */
const SYSTEM_PROMPT = "System prompt";

/** The variables and the system prompt at the end of a path. */
export async function settingsAt(
  client: Client,
  session: SessionView,
  path: readonly TreeNodeView[],
  signal: AbortSignal,
): Promise<Values> {
  if (path.at(-1)?.id === session.leafId) {
    const { variables, systemPrompt } = session.path.settings;
    return withPrompt(variables, systemPrompt);
  }
  const changes = path.filter(({ type }) => type === "variables").slice(-CHANGES_MAX);
  return foldSettings(
    await Promise.all(changes.map(({ id }) => client.sessions.entry(session.header.id, id, { signal }))),
  );
}

/** What the changes of a path add up to, oldest first. */
export function foldSettings(entries: readonly Entry[]): Values {
  const values = new Map<string, unknown>();
  let prompt: string | null = null;
  for (const entry of entries) {
    if (entry.type !== "variables") continue;
    for (const name of entry.unset) values.delete(name);
    for (const [name, value] of Object.entries(entry.set)) values.set(name, value);
    if (entry.systemPrompt !== undefined) prompt = entry.systemPrompt;
  }
  return withPrompt(Object.fromEntries(values), prompt);
}

/** The values that are not the same on both sides, by name. */
export function differencesOf(left: Values, right: Values): readonly ValueDifference[] {
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort();
  return names
    .map((name) => ({ name, left: textOf(left, name), right: textOf(right, name) }))
    .filter((each) => each.left !== each.right);
}

function withPrompt(variables: Values, prompt: string | null): Values {
  return prompt === null ? variables : { [SYSTEM_PROMPT]: prompt, ...variables };
}

function textOf(values: Values, name: string): string | null {
  if (!Object.hasOwn(values, name)) return null;
  return JSON.stringify(sorted(values[name]), null, 2) ?? null;
}

/** Objects with their keys in order, as two that differ in it are the same. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(keys.map(([key, inner]) => [key, sorted(inner)]));
}
