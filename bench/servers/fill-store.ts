import { createHeader, type SessionStore, SessionTree } from "skein";
import { messageOf } from "../message-of.ts";

const ENTRIES_AT_ONCE = 1000;
const CREATES_AT_ONCE = 64;

/**
 * Makes a session with the given number of entries, the last of them a compaction that keeps some. Many entries are
 * appended at a time, which leaves the same rows as single appends and takes seconds instead of minutes.
 */
export async function fillSession(store: SessionStore, entries: number, kept: number): Promise<string> {
  const { header } = await store.create(createHeader());
  let last: readonly { readonly id: string }[] = [];
  for (let first = 0; first < entries - 1; first += ENTRIES_AT_ONCE) {
    const count = Math.min(ENTRIES_AT_ONCE, entries - 1 - first);
    const drafts = Array.from({ length: count }, (_, index) => ({
      type: "message" as const,
      message: messageOf(first + index),
    }));
    last = [...last, ...(await store.append(header.id, drafts)).entries].slice(-kept);
  }
  const tree = await SessionTree.on(store, header.id);
  const firstKeptEntryId = (last[0] as { readonly id: string }).id;
  await tree.appendCompaction({ summary: "What was asked for was done.", firstKeptEntryId, tokensBefore: entries });
  return header.id;
}

/** Makes sessions with one message each, many in parallel; every user has the same number of them. */
export async function fillListing(store: SessionStore, sessions: number, ofUser: number): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < sessions) {
      const index = next++;
      const header = createHeader({ userId: userAt(Math.floor(index / ofUser)) });
      await store.create(header, { entries: [{ type: "message", message: messageOf(index) }] });
    }
  };
  await Promise.all(Array.from({ length: CREATES_AT_ONCE }, work));
}

/** The name of a user in the listings. */
export function userAt(index: number): string {
  return `user-${index}`;
}
