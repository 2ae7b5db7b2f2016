import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import { listPages } from "../../stores/complete/list-pages.ts";

/** A session, live or in the trash. */
export interface FoundSession {
  readonly head: SessionHead;
  readonly deleted: boolean;
}

/** The sessions that a query asks for, and then those in the trash. */
export async function* findSessions(
  store: SessionStore,
  query: Pick<SessionQuery, "userId" | "parentId">,
): AsyncGenerator<FoundSession> {
  for (const deleted of [false, true])
    for await (const { items } of listPages(store, { ...query, deleted }))
      for (const head of items) yield { head, deleted };
}

/** The log of a session, as far as its head goes. */
export async function readFound(store: SessionStore, { head, deleted }: FoundSession): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(head.header.id, { before: head.version, deleted })) entries.push(entry);
  return entries;
}

/** The ids of sessions, deleted ones too, in which a user caused an entry, some at a time. */
export async function* authoredBy(
  store: SessionStore,
  userId: string,
  /** Whether an entry is the user's; asked where the store cannot tell, and every session is read through. */
  isTheirs: (entry: Entry) => boolean,
): AsyncGenerator<readonly string[]> {
  const { authored } = store.eraser;
  if (authored !== undefined) return yield* authored.call(store.eraser, userId);
  for await (const found of findSessions(store, {}))
    yield (await readFound(store, found)).some(isTheirs) ? [found.head.header.id] : [];
}
