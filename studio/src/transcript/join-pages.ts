import type { Entry } from "../../../src/session/log/entry.ts";

/** What is held of a path: a piece without gaps, oldest first, and the cursors of what stands before and after it. */
export interface HeldPath {
  readonly entries: readonly Entry[];
  /** Goes into `before`; null when the path begins with the first entry that is held. */
  readonly older: string | null;
  /** Goes into `after`; null when the path ends with the last entry that is held. */
  readonly newer: string | null;
}

/** A page as the server gave it. */
export interface PathPage {
  readonly items: readonly Entry[];
  readonly next: string | null;
}

/**
 * What is held after the latest page came again. Entries never change, so those that were held stay the same objects; what
 * was loaded of the older ones stays as long as the page continues it.
 */
export function joinLatest(held: HeldPath | null, page: PathPage): HeldPath {
  const [first] = page.items;
  if (held === null || first === undefined) return { entries: page.items, older: page.next, newer: null };
  const known = new Map(held.entries.map((entry) => [entry.id, entry]));
  const items = page.items.map((entry) => known.get(entry.id) ?? entry);
  if (known.has(first.id)) {
    const from = held.entries.findIndex(({ id }) => id === first.id);
    return { entries: [...held.entries.slice(0, from), ...items], older: held.older, newer: null };
  }
  const parent = held.entries.findIndex(({ id }) => id === first.parentId);
  if (parent < 0) return { entries: items, older: page.next, newer: null };
  return { entries: [...held.entries.slice(0, parent + 1), ...items], older: held.older, newer: null };
}

/** Whether a latest page goes on where something that is held ends, so that nothing is missing between them. */
export function continues(held: HeldPath | null, { items: [first], next }: PathPage): boolean {
  if (held === null || first === undefined || next === null) return true;
  return held.entries.some(({ id }) => id === first.id || id === first.parentId);
}

/** What is held after an older page came; unchanged where it is not the page before it any more. */
export function joinOlder(held: HeldPath, before: string, page: PathPage): HeldPath {
  if (held.older !== before) return held;
  return { ...held, entries: [...page.items, ...held.entries], older: page.next };
}

/** What is held after the page that follows an entry came; unchanged where it does not end with that entry any more. */
export function joinNewer(held: HeldPath, after: string, page: PathPage): HeldPath {
  if (held.entries.at(-1)?.id !== after) return held;
  return { ...held, entries: [...held.entries, ...page.items], newer: page.next };
}
