import { useCallback, useRef, useState } from "react";
import type { Client, TreeView } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import { useClient } from "../request/use-client.ts";
import type { Requested } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import { growTree } from "./grow-tree.ts";

/** The tree of a session, and a function that loads all of it. */
export interface KnownTree extends Requested<TreeView> {
  /** Loads the nodes of long runs, which are left out at first. */
  readonly unfold: () => void;
}

/**
 * The tree of a session, kept up to date: it is loaded once, when it is first wanted, and then grows with new entries.
 * Long runs without branches are left out, except for the entry to `keep`, until `unfold` is called.
 */
export function useTree(
  sessionId: string,
  revision: number,
  { wanted, keep }: { readonly wanted: boolean; readonly keep: string | null },
): KnownTree {
  const client = useClient();
  const [whole, setWhole] = useState<string | null>(null);
  const folded = whole !== sessionId;
  const held = useRef<{ readonly sessionId: string; readonly folded: boolean; readonly tree: TreeView } | null>(null);
  const requested = useRevised(sessionId, wanted ? `${revision} ${folded}` : "not wanted yet", async (signal) => {
    if (!wanted) return null;
    const before = held.current?.sessionId === sessionId && held.current.folded === folded ? held.current.tree : null;
    const grown = before === null ? null : await grow(client, sessionId, before, signal);
    const which = folded ? { folded, ...(keep === null ? {} : { keep }) } : {};
    const tree = grown ?? (await client.sessions.tree(sessionId, { ...which, signal }));
    held.current = { sessionId, tree, folded };
    return tree;
  });
  const { data, error } = requested;
  const unfold = useCallback(() => setWhole(sessionId), [sessionId]);
  return { ...requested, loading: requested.loading || (data === null && error === null), unfold };
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
