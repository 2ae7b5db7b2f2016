import { useRef } from "react";
import type { Client, TreeView } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import { useClient } from "../request/use-client.ts";
import type { Requested } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import { growTree } from "./grow-tree.ts";

/**
 * The tree of a session, kept up to date: it is read once, not before it is wanted, and then grows with the entries that
 * come, as the whole of it is large in a long session.
 */
export function useTree(sessionId: string, revision: number, wanted: boolean): Requested<TreeView> {
  const client = useClient();
  const held = useRef<{ readonly sessionId: string; readonly tree: TreeView } | null>(null);
  const requested = useRevised(sessionId, wanted ? revision : "not wanted yet", async (signal) => {
    if (!wanted) return null;
    const before = held.current?.sessionId === sessionId ? held.current.tree : null;
    const grown = before === null ? null : await grow(client, sessionId, before, signal);
    const tree = grown ?? (await client.sessions.tree(sessionId, { signal }));
    held.current = { sessionId, tree };
    return tree;
  });
  const { data, error } = requested;
  return { ...requested, loading: requested.loading || (data === null && error === null) };
}

async function grow(client: Client, id: string, tree: TreeView, signal: AbortSignal): Promise<TreeView | null> {
  const [entries, checkpoints] = await Promise.all([
    entriesFrom(client, id, tree.version, signal),
    client.checkpoints.list(id, { signal }),
  ]);
  return growTree(tree, entries, checkpoints);
}

async function entriesFrom(client: Client, id: string, version: number, signal: AbortSignal): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of client.sessions.entriesAll(id, { after: version - 1 }, { signal })) entries.push(entry);
  return entries;
}
