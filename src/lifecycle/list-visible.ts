import type { SessionStatus } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionPage, SessionQuery, SessionStore } from "../session/store.ts";
import type { Viewer } from "./access.ts";
import type { Expiry } from "./expiry.ts";

const LIMIT_DEFAULT = 100;
/** The most pages of the store that are read for one page of the manager. */
const PAGES_MAX = 10;
const EMPTY: SessionPage = { items: [], next: null, damaged: [] };

/**
 * One page of the sessions that a viewer may see, newest first, with their current status. A session whose expiry is due but not
 * recorded is listed as expired only, which can make a page shorter than its limit.
 */
export async function listVisible(
  { store, expiry }: { readonly store: SessionStore; readonly expiry: Expiry },
  query: SessionQuery,
  viewer: Viewer,
): Promise<SessionPage> {
  if (viewer !== null && query.userId !== undefined && query.userId !== viewer) return EMPTY;
  const { status, limit = LIMIT_DEFAULT, cursor, ...rest } = query;
  const wanted = status === undefined ? null : [status].flat();
  const asked = {
    ...rest,
    ...(viewer === null ? {} : { userId: viewer }),
    ...(wanted === null ? {} : { status: recordedAs(wanted) }),
  };
  const items: SessionHead[] = [];
  let page: SessionPage = { ...EMPTY, next: cursor ?? null };
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const from = page.next === null ? {} : { cursor: page.next };
    const room = limit - items.length;
    page = await store.list({ ...asked, ...from, limit: room });
    const seen = page.items.map((head) => expiry.asSeen(head));
    items.push(...seen.filter((head) => wanted === null || wanted.includes(head.status)));
    // A page that the store cut short has already reached the size limit of an answer.
    if (page.next === null || items.length >= limit || page.items.length < room) break;
  }
  // The user of an unreadable session is unknown, so it is not shown to users.
  return { items, next: page.next, damaged: viewer === null ? page.damaged : [] };
}

/** The recorded statuses that sessions with the wanted statuses can have. */
function recordedAs(wanted: readonly SessionStatus[]): readonly SessionStatus[] {
  return wanted.includes("expired") ? [...new Set<SessionStatus>([...wanted, "active", "suspended"])] : wanted;
}
