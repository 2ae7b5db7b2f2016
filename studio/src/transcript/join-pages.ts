import type { Entry } from "../../../src/session/log/entry.ts";

/** What is held of a path: its latest entries, oldest first, and the cursor of those before them. */
export interface HeldPath {
  readonly entries: readonly Entry[];
  /** Goes into `before`; null when the path begins with the first entry that is held. */
  readonly older: string | null;
}

/** The latest page as the server gave it. */
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
  if (held === null || first === undefined) return { entries: page.items, older: page.next };
  const known = new Map(held.entries.map((entry) => [entry.id, entry]));
  const items = page.items.map((entry) => known.get(entry.id) ?? entry);
  if (known.has(first.id)) {
    const from = held.entries.findIndex(({ id }) => id === first.id);
    return { entries: [...held.entries.slice(0, from), ...items], older: held.older };
  }
  const parent = held.entries.findIndex(({ id }) => id === first.parentId);
  if (parent < 0) return { entries: items, older: page.next };
  return { entries: [...held.entries.slice(0, parent + 1), ...items], older: held.older };
}

/** Whether a latest page goes on where something that is held ends, so that nothing is missing between them. */
export function continues(held: HeldPath | null, { items: [first], next }: PathPage): boolean {
  if (held === null || first === undefined || next === null) return true;
  return held.entries.some(({ id }) => id === first.id || id === first.parentId);
}

/** What is held after an older page came; unchanged where it is not the page before it any more. */
export function joinOlder(held: HeldPath, before: string, page: PathPage): HeldPath {
  if (held.older !== before) return held;
  return { entries: [...page.items, ...held.entries], older: page.next };
}
