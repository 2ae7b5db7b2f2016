import { nextSlice } from "../../internal/long-work.ts";
import { SessionError, show } from "../../session/errors.ts";
import { isSessionId } from "../../session/id.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { listPosition } from "../../session/query.ts";
import type { SessionPage, SessionQuery } from "../../session/store.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import { headWeight } from "./head-weight.ts";

/** How many sessions the first batch reads. Each further batch reads twice as many while the sessions are small. */
const BATCH_FIRST = 8;
const BATCH_MAX = 128;
/** The most characters that the heads of one page, or of the hits of one search, may have together. */
export const PAGE_CHARACTERS_MAX: number = 8 * 1024 * 1024;
/** A batch with more characters than this lets other tasks of this process run before it is used. */
const SLICE_CHARACTERS = 256 * 1024;
/** Sessions count as small if their heads have at most this many characters on average. */
const SMALL_CHARACTERS = 16 * 1024;
const CURSOR_CHARACTERS_MAX = 512;

/**
 * Reads one page of a listing. The page ends early if its heads take more than about 8 MB, so that large variables and
 * metadata cannot fill the memory.
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
  // The user and the runs of a damaged session are unknown, so a listing for one user or of runs does not show damaged sessions.
  const { userId, runs, dueBefore } = filter;
  const isOfAll = userId === undefined && runs === undefined && dueBefore === undefined;
  const pending = after === null && isOfAll ? listing.damaged?.(filter.deleted === true) : [];
  const damaged = (await pending) ?? [];
  for (;;) {
    if (items.length > 0) batch = characters <= items.length * SMALL_CHARACTERS ? batch * 2 : first;
    const wanted = Math.min(limit - items.length, batch, most);
    // One session more than wanted shows whether there is a next page.
    let page = await listing.list(filter, wanted + 1, from);
    const weight = page.reduce((sum, head) => sum + headWeight(head), 0);
    if (weight > SLICE_CHARACTERS) {
      // Drop the batch while this call waits for its slice, and read it again then: waiting calls must not hold memory.
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

/** Encodes a position in a listing as a cursor. */
function encodeCursor({ modifiedAt, id }: ListPosition): string {
  return Buffer.from(JSON.stringify({ modifiedAt, id })).toString("base64url");
}

/** @throws {SessionError} `INVALID_QUERY` unless the text came from `encodeCursor`. */
export function decodeCursor(cursor: string): ListPosition {
  const position = parse(cursor);
  // Accept only what `encodeCursor` returns for the position: other texts that decode to it are refused.
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
