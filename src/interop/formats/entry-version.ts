import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { isFields } from "./foreign-values.ts";

/** Stands between the id of an imported entry and what tells a later version of it from the first. */
export const VERSION_MARK = "~";
export const VERSION_DIGITS = 8;

/** Stands beside what formats keep of an entry. */
const SPENT = "spent";

const VERSION: RegExp = new RegExp(`^(.+)${VERSION_MARK}[0-9a-f]{${VERSION_DIGITS}}$`);

/** The id of an imported entry's first version; null unless the id names a later version. */
export function firstVersionOf(id: string): string | null {
  return VERSION.exec(id)?.[1] ?? null;
}

/**
 * The ids of later versions of imported entries whose earlier versions are hidden, with the ids that those had. By these the
 * program knows them.
 */
export async function versionNames(
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

/** A later version of an answer without what it spent, which counts with the first; an export says it all the same. */
export function withSpentBeside<T extends { readonly message: AssistantMessage }>(draft: T): T {
  const { usage, cost, ...message } = draft.message;
  const { foreign } = draft as { readonly foreign?: JsonObject };
  const spent = { ...(usage === undefined ? {} : { usage }), ...(cost === undefined ? {} : { cost }) };
  return { ...draft, message, foreign: { ...foreign, [SPENT]: spent } };
}

/** An entry as its first version, with the names of all that it refers to. */
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
