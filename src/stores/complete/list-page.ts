import { nextSlice } from "../../internal/long-work.ts";
import { SessionError, show } from "../../session/errors.ts";
import { isSessionId } from "../../session/id.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { listPosition } from "../../session/query.ts";
import type { SessionPage, SessionQuery } from "../../session/store.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import { headWeight } from "./head-weight.ts";

/** How many sessions are read at first; twice as many each time, as long as they are small. */
const BATCH_FIRST = 8;
const BATCH_MAX = 128;
/** How much the sessions of one page, or of what one search has found, may take. */
export const PAGE_CHARACTERS_MAX: number = 8 * 1024 * 1024;
/** How much is read before others have their turn. */
const SLICE_CHARACTERS = 256 * 1024;
/** What a session may take on average to count as small. */
const SMALL_CHARACTERS = 16 * 1024;
const CURSOR_CHARACTERS_MAX = 512;

/**
 * One page of a listing. It ends early where its sessions take more than about 8 MB, so that no page fills the memory,
 * however large the variables and the metadata of its sessions are.
 */
export async function listPage(
  listing: Pick<SessionListing, "list" | "scans" | "damaged">,
  filter: SessionQuery,
  limit: number,
  after: ListPosition | null,
): Promise<SessionPage> {
  const items: SessionHead[] = [];
  const [first, most] = listing.scans === true ? [limit, limit] : [BATCH_FIRST, BATCH_MAX];
  let [characters, batch, from] = [0, first, after];
  // Of what cannot be read nobody knows whose it is, so it is not shown to one user among many.
  const shown = after === null && filter.userId === undefined ? listing.damaged?.(filter.deleted === true) : [];
  const damaged = (await shown) ?? [];
  for (;;) {
    if (items.length > 0) batch = characters <= items.length * SMALL_CHARACTERS ? batch * 2 : first;
    const wanted = Math.min(limit - items.length, batch, most);
    // One more than asked for tells whether there is a next page.
    let page = await listing.list(filter, wanted + 1, from);
    const weight = page.reduce((sum, head) => sum + headWeight(head), 0);
    if (weight > SLICE_CHARACTERS) {
      // Not held while others are before it.
      page = [];
      await nextSlice(weight);
      page = await listing.list(filter, wanted + 1, from);
    }
    for (const [i, head] of page.slice(0, wanted).entries()) {
      items.push(head);
      characters += headWeight(head);
      const full = items.length === limit || characters > PAGE_CHARACTERS_MAX;
      if (full && i + 1 < page.length) return { items, next: encodeCursor(listPosition(head)), damaged };
    }
    const last = items.at(-1);
    if (page.length <= wanted || last === undefined) return { items, next: null, damaged };
    from = listPosition(last);
  }
}

/** The text that stands for a position in a listing. */
function encodeCursor({ modifiedAt, id }: ListPosition): string {
  return Buffer.from(JSON.stringify({ modifiedAt, id })).toString("base64url");
}

/** @throws {SessionError} `INVALID_QUERY` unless the text came from `encodeCursor`. */
export function decodeCursor(cursor: string): ListPosition {
  const position = parse(cursor);
  // Only the very text that was handed out counts, so that a cursor cannot be half right.
  if (position === null || encodeCursor(position) !== cursor) {
    throw new SessionError(
      "INVALID_QUERY",
      `${show(cursor)} is not a cursor of this store; pass the "next" of a page as it is.`,
    );
  }
  return position;
}

function parse(cursor: unknown): ListPosition | null {
  if (typeof cursor !== "string" || cursor.length > CURSOR_CHARACTERS_MAX) return null;
  try {
    const { modifiedAt, id } = JSON.parse(Buffer.from(cursor, "base64url").toString()) as Partial<ListPosition>;
    return isTimestamp(modifiedAt) && isSessionId(id) ? { modifiedAt, id } : null;
  } catch {
    return null;
  }
}
