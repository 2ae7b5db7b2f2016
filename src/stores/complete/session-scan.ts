import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { listPosition } from "../../session/query.ts";
import type { ListPosition, ReadRange } from "../../session/store-driver.ts";
import type { SessionPage, SessionQuery } from "../../session/store.ts";

/** What a search or a sum that reads every session through needs of a store. */
export interface ScanSource {
  list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">>;
  read(sessionId: string, range: ReadRange): AsyncIterable<Entry>;
}

/** Every session of a query, newest first, fetched in pages. */
export async function* scanSessions(source: ScanSource, query: SessionQuery): AsyncGenerator<SessionHead> {
  let after: ListPosition | null = null;
  for (;;) {
    const { items }: Omit<SessionPage, "next"> = await source.list(query, PAGE_ITEMS_MAX, after);
    yield* items;
    const last = items.at(-1);
    // Every page ends later in the listing than the one before, so a short page is the end.
    if (last === undefined || items.length < PAGE_ITEMS_MAX) return;
    after = listPosition(last);
  }
}
