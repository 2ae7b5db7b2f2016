import type { SessionHead } from "../../session/log/fold.ts";
import { listPosition } from "../../session/query.ts";
import type { SessionPage, SessionQuery } from "../../session/store.ts";
import type { ListPosition, StoreDriver } from "../../session/store-driver.ts";
import { headWeight } from "./head-weight.ts";
import { encodeCursor } from "./list-cursor.ts";

/** How many sessions are read at first; twice as many each time, as long as they are small. */
const BATCH_FIRST = 8;
const BATCH_MAX = 128;
const PAGE_CHARACTERS_MAX = 8 * 1024 * 1024;
/** What a session may take on average to count as small. */
const SMALL_CHARACTERS = 16 * 1024;

/**
 * One page of a listing. It ends early where its sessions take more than about 8 MB, so that no page fills the memory,
 * however large the variables and the metadata of its sessions are.
 */
export async function listPage(
  driver: Pick<StoreDriver, "list">,
  filter: SessionQuery,
  limit: number,
  after: ListPosition | null,
): Promise<SessionPage> {
  const items: SessionHead[] = [];
  let [characters, batch, from] = [0, BATCH_FIRST, after];
  let damaged: SessionPage["damaged"] = [];
  for (;;) {
    if (items.length > 0) batch = characters <= items.length * SMALL_CHARACTERS ? batch * 2 : BATCH_FIRST;
    const wanted = Math.min(limit - items.length, batch, BATCH_MAX);
    // One more than asked for tells whether there is a next page.
    const page = await driver.list(filter, wanted + 1, from);
    damaged = page.damaged;
    for (const [i, head] of page.items.slice(0, wanted).entries()) {
      items.push(head);
      characters += headWeight(head);
      const full = items.length === limit || characters > PAGE_CHARACTERS_MAX;
      if (full && i + 1 < page.items.length) return { items, next: encodeCursor(listPosition(head)), damaged };
    }
    const last = items.at(-1);
    if (page.items.length <= wanted || last === undefined) return { items, next: null, damaged };
    from = listPosition(last);
  }
}
