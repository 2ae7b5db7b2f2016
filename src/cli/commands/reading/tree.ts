import { type Entry, SessionTree } from "../../../index.ts";
import type { TreeNode } from "../../../session/log/entry-tree.ts";
import type { Command } from "../../command.ts";
import { printTree } from "../../print-tree.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Prints the branches of a session. */
export const tree: Command = {
  name: "tree",
  summary: "Show the branches of a session, with labels and leaf.",
  arguments: [SESSION_ARGUMENT],
  options: {},
  examples: [{ line: "skein tree last", what: "the branches of the latest session" }],
  json: {
    sessionId: "the session's id",
    leafId: "the parent of the next entry, or null",
    nodes:
      "all nodes, a parent before its children: id, parentId, seq, type, timestamp, label or null, active (on the path to the leaf)",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    await using store = await context.openStore();
    const { header } = await findSession(store, context.positionals[0] as string);
    const opened = await SessionTree.on(store, header.id);
    const roots = await opened.getTree();
    const { leafId } = opened;
    const path = new Set((await opened.getBranch()).map(({ id }) => id));
    if (context.json) {
      const nodes = nodesOf(roots).map(({ entry, label }) => ({
        ...stampOf(entry),
        label: label ?? null,
        active: path.has(entry.id),
      }));
      context.printJson({ sessionId: header.id, leafId, nodes });
    } else printTree(context.terminal, roots, { leafId, path });
    return 0;
  },
};

function nodesOf(roots: readonly TreeNode[]): TreeNode[] {
  // Iterative: a tree can be deeper than the call stack allows.
  const nodes = [...roots];
  for (const node of nodes) for (const child of node.children) nodes.push(child);
  return nodes.sort((one, other) => one.entry.seq - other.entry.seq);
}

function stampOf({
  id,
  parentId,
  seq,
  type,
  timestamp,
}: Entry): Pick<Entry, "id" | "parentId" | "seq" | "type" | "timestamp"> {
  return { id, parentId, seq, type, timestamp };
}
