import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { isFields } from "./foreign-values.ts";

/** Separates the id of an imported entry from the suffix that marks a later version of it. */
export const VERSION_MARK = "~";
export const VERSION_DIGITS = 8;

/** The field of `foreign` that holds usage and cost, beside the fields of the formats. */
const SPENT = "spent";

const VERSION: RegExp = new RegExp(`^(.+)${VERSION_MARK}[0-9a-f]{${VERSION_DIGITS}}$`);

/** The id of the first version, if this id names a later version of an imported entry; else null. */
export function firstVersionOf(id: string): string | null {
  return VERSION.exec(id)?.[1] ?? null;
}

/**
 * Maps the id of each later version whose first version is hidden to the id of that first version. The other program knows
 * the entry by the first id.
 */
export async function firstVersionIds(
  entries: AsyncIterable<Entry>,
  pruned: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (pruned.size === 0) return names;
  const hidden = new Set(pruned);
  for await (const entry of entries) {
    const { id, parentId } = entry;
    if (!isNode(entry)) continue;
    const first = firstVersionOf(id);
    if (hidden.has(id) || (parentId !== null && hidden.has(parentId))) hidden.add(id);
    else if (first !== null && hidden.has(first)) names.set(id, first);
  }
  return names;
}

/**
 * Moves usage and cost of a later version of an answer into its `foreign` field. The sums already count them with the first
 * version; an export restores them from there.
 */
export function moveUsageAside<T extends { readonly message: AssistantMessage }>(draft: T): T {
  const { usage, cost, ...message } = draft.message;
  const { foreign } = draft as { readonly foreign?: JsonObject };
  const spent = { ...(usage === undefined ? {} : { usage }), ...(cost === undefined ? {} : { cost }) };
  return { ...draft, message, foreign: { ...foreign, [SPENT]: spent } };
}

/** The entry with the id of its first version; the ids that it refers to are replaced in the same way. */
export function asFirstVersion(entry: Entry, names: ReadonlyMap<string, string>): Entry {
  if (names.size === 0) return entry;
  const named: Record<string, unknown> = { ...entry };
  const { foreign } = entry as { readonly foreign?: JsonValue };
  if (names.has(entry.id) && entry.type === "message" && isFields(foreign) && isFields(foreign[SPENT])) {
    const { usage, cost } = foreign[SPENT];
    const spent = { ...(usage === undefined ? {} : { usage }), ...(cost === undefined ? {} : { cost }) };
    named.message = { ...entry.message, ...spent };
  }
  for (const field of ["id", "parentId", "targetId", "firstKeptEntryId", "fromId"]) {
    const id = named[field];
    if (typeof id === "string") named[field] = names.get(id) ?? id;
  }
  return named as unknown as Entry;
}
