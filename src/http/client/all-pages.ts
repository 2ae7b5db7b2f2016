import type { Page } from "../wire.ts";

/** The items of all pages, each page asked for when it is needed. */
export async function* allPages<T>(
  read: (next: string | null) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let next: string | null = null;
  do {
    const page: Page<T> = await read(next);
    yield* page.items;
    next = page.next;
  } while (next !== null);
}
