import type { Entry } from "../../../src/session/log/entry.ts";

/** The loaded part of a path: entries without gaps, oldest first, and the cursors of those before and after it. */
export interface HeldPath {
  readonly entries: readonly Entry[];
  /** The `before` of the next request; null if the path begins with the first loaded entry. */
  readonly older: string | null;
  /** The `after` of the next request; null if the path ends with the last loaded entry. */
  readonly newer: string | null;
}

/** A page of the server. */
export interface PathPage {
  readonly items: readonly Entry[];
  readonly next: string | null;
}

/**
 * Joins the latest page to the loaded part. Entries never change, so loaded ones stay the same objects; older ones are
 * kept if the page continues them.
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

/** Whether a latest page continues the loaded part without a gap. */
export function continues(held: HeldPath | null, { items: [first], next }: PathPage): boolean {
  if (held === null || first === undefined || next === null) return true;
  return held.entries.some(({ id }) => id === first.id || id === first.parentId);
}

/** Prepends an older page; returns the same object if the page no longer fits. */
export function joinOlder(held: HeldPath, before: string, page: PathPage): HeldPath {
  if (held.older !== before) return held;
  return { ...held, entries: [...page.items, ...held.entries], older: page.next };
}

/** Appends a newer page; returns the same object if the page no longer fits. */
export function joinNewer(held: HeldPath, after: string, page: PathPage): HeldPath {
  if (held.entries.at(-1)?.id !== after) return held;
  return { ...held, entries: [...held.entries, ...page.items], newer: page.next };
}
