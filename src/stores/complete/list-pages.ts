import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SessionPage, SessionQuery, SessionStore } from "../../session/store.ts";

/** Iterates over the pages of a listing. */
export async function* listPages(
  store: SessionStore,
  query: Omit<SessionQuery, "cursor"> = {},
): AsyncGenerator<SessionPage> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await store.list({ limit: PAGE_ITEMS_MAX, ...query, ...(cursor !== undefined && { cursor }) });
    yield page;
    cursor = page.next;
  }
}

/** Iterates over the heads of the sessions that a query lists. */
export async function* listedHeads(
  store: SessionStore,
  query?: Omit<SessionQuery, "cursor">,
): AsyncGenerator<SessionHead> {
  for await (const { items } of listPages(store, query)) yield* items;
}
