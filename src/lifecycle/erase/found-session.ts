import type { Entry } from "../../session/entry.ts";
import type { SessionHead } from "../../session/fold.ts";
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

/**
 * The log of a session. A deleted one is brought back for as long as it is read, as nothing else can read it; a note under
 * the reader's own key says so, for `returnLent`.
 */
export async function readFound(
  store: SessionStore,
  { head, deleted }: FoundSession,
  reader: string,
): Promise<readonly Entry[]> {
  const { id } = head.header;
  if (!deleted) return readTo(store, head);
  await store.eraser.writeMarks(new Map([[lentKey(reader), JSON.stringify({ id, version: head.version })]]));
  try {
    return (await store.undelete(id)) ? await readTo(store, head) : [];
  } finally {
    await returnLent(store, reader);
  }
}

/** Puts back into the trash what a reader has taken out of it, if it was killed meanwhile. */
export async function returnLent(store: SessionStore, reader: string): Promise<void> {
  const key = lentKey(reader);
  const note = (await store.eraser.readMarks([key])).get(key);
  if (note === undefined) return;
  const { id, version } = JSON.parse(note) as { readonly id: string; readonly version: number };
  // Someone who has found it again and gone on with it wants to keep it.
  if ((await store.head(id))?.version === version) await store.delete(id);
  await store.eraser.writeMarks(new Map([[key, null]]));
}

function lentKey(reader: string): string {
  return `${reader}/lent`;
}

async function readTo(store: SessionStore, { header, version }: SessionHead): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(header.id, { before: version })) entries.push(entry);
  return entries;
}

/** How a store is read through that cannot tell where a user has said something. */
export interface ReadThrough {
  read(found: FoundSession): Promise<readonly Entry[]>;
  /** Whether an entry is the user's. */
  isTheirs(entry: Entry): boolean;
}

/** The ids of sessions, deleted ones too, in which a user caused an entry, some at a time. */
export async function* authoredBy(
  store: SessionStore,
  userId: string,
  { read, isTheirs }: ReadThrough,
): AsyncGenerator<readonly string[]> {
  const { authored } = store.eraser;
  if (authored !== undefined) return yield* authored.call(store.eraser, userId);
  for await (const found of findSessions(store, {}))
    yield (await read(found)).some(isTheirs) ? [found.head.header.id] : [];
}
