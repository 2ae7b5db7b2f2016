import { type Entry, isNode } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { type EntryLink, latestLeaf, siblingMessages } from "../session/log/siblings.ts";
import type { SessionStore } from "../session/store.ts";

/** The siblings of every message that has any. Reads the log, unless the session has only one branch. */
export async function readSiblings(store: SessionStore, head: SessionHead): Promise<Map<string, readonly string[]>> {
  if (head.messageCount === head.path.turnCount) return new Map();
  const links = await readLinks(store, head.header.id, -1);
  return new Map([...siblingMessages(links)].filter(([, ids]) => ids.length > 1));
}

/** The siblings of a message, itself included. Reads the log from the message before it on. */
export async function readSiblingsOf(
  store: SessionStore,
  sessionId: string,
  message: Entry,
): Promise<readonly string[]> {
  let above = await parentOf(store, sessionId, message);
  while (above !== null && above.type !== "message") above = await parentOf(store, sessionId, above);
  const links = await readLinks(store, sessionId, above === null ? -1 : above.seq);
  const siblings = siblingMessages(above === null ? links : [linkOf(above), ...links]);
  return siblings.get(message.id) ?? [message.id];
}

async function parentOf(store: SessionStore, sessionId: string, { parentId }: Entry): Promise<Entry | null> {
  return parentId === null ? null : store.getEntry(sessionId, parentId);
}

/** The leaf below an entry, or the entry itself, that was appended last. Reads the log from the entry on. */
export async function readLatestLeaf(store: SessionStore, sessionId: string, entry: Entry): Promise<string> {
  return latestLeaf(await readLinks(store, sessionId, entry.seq), entry.id);
}

/** The nodes and prunes after a position, without their content. */
async function readLinks(store: SessionStore, sessionId: string, after: number): Promise<readonly EntryLink[]> {
  const links: EntryLink[] = [];
  for await (const entry of store.read(sessionId, { after })) {
    if (isNode(entry) || entry.type === "prune") links.push(linkOf(entry));
  }
  return links;
}

function linkOf(entry: Entry): EntryLink {
  const { id, parentId, type } = entry;
  return { id, parentId, type, ...(entry.type === "prune" ? { targetId: entry.targetId } : {}) };
}
