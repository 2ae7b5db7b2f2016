import fc from "fast-check";
import type { TreeView } from "../src/http/client/index.ts";
import { expect, test } from "vitest";
import { readTreeView } from "../src/http/server/routes/read-tree-view.ts";
import type { Entry, EntryDraft } from "../src/session/log/entry.ts";
import type { SessionHead } from "../src/session/log/fold.ts";
import { createHeader } from "../src/session/log/header.ts";
import type { SessionStore } from "../src/session/store.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { growTree } from "../studio/src/tree/grow-tree.ts";

const CHECKPOINT = { sessionId: "s", createdAt: "2026-01-01T00:00:00.000Z", parentCheckpointId: null, metadata: {} };
let made = 0;

type Step = { readonly kind: "say" | "onto" | "leaf" | "label" | "unlabel" | "name" | "mark"; readonly at: number };

const kind = fc.constantFrom<Step["kind"]>("say", "say", "say", "onto", "leaf", "label", "unlabel", "name", "mark");
const steps = fc.array(fc.record({ kind, at: fc.nat({ max: 50 }) }), { minLength: 1, maxLength: 30 });

// The server reads the whole log, the studio only new entries; both must produce the same tree.
test("a tree updated with new entries equals the tree that the server would read, for any entries", async () => {
  await fc.assert(
    fc.asyncProperty(steps, steps, async (before, after) => {
      const store = openMemoryStore();
      await store.create(createHeader({ id: "s" }));
      await store.append("s", [{ type: "message", id: "m0", message: { role: "user", content: "first" } }]);
      await take(store, before);
      const tree = await readTreeView(store, await headOf(store));
      await take(store, after);
      const entries: Entry[] = [];
      for await (const entry of store.read("s", { after: tree.version - 1 })) entries.push(entry);
      const grown = growTree(tree, entries, await store.listCheckpoints("s"));
      expect(grown).toEqual(await readTreeView(store, await headOf(store)));
    }),
    { numRuns: 200 },
  );
});

test("a pruned branch makes the tree be read again", () => {
  const tree: TreeView = { leafId: null, version: 0, nodes: [], activePath: [] };
  const stamp = { id: "p", parentId: null, seq: 0, timestamp: "2026-01-01T00:00:00.000Z" };
  expect(growTree(tree, [{ type: "prune", targetId: "a", ...stamp }], [])).toBe(null);
});

test("an entry that refers to a node hidden by folding makes the tree be read again", () => {
  const tree: TreeView = { leafId: "leaf", version: 0, nodes: [], activePath: [] };
  const stamp = { id: "n", parentId: "left-out", seq: 0, timestamp: "2026-01-01T00:00:00.000Z" };
  for (const entry of [
    { type: "leaf", targetId: "left-out", ...stamp },
    { type: "label", targetId: "left-out", label: "here", ...stamp },
    { type: "message", message: { role: "user", content: "on another branch" }, ...stamp },
  ] as const) {
    expect(growTree(tree, [entry], []), entry.type).toBe(null);
  }
});

async function headOf(store: SessionStore): Promise<SessionHead> {
  return (await store.head("s")) as SessionHead;
}

async function take(store: SessionStore, taken: readonly Step[]): Promise<void> {
  for (const { kind: what, at } of taken) {
    const { messageCount, version, leafId } = await headOf(store);
    const target = `m${at % messageCount}`;
    const said: EntryDraft = {
      type: "message",
      id: `m${messageCount}`,
      message: { role: "assistant", content: `said ${at}`, toolCalls: [{ id: "c", name: "look", arguments: "{}" }] },
    };
    if (what === "say") await store.append("s", [said]);
    if (what === "onto") await store.append("s", [said], { onto: target });
    if (what === "leaf") await store.append("s", [{ type: "leaf", targetId: at === 0 ? null : target }]);
    if (what === "label") await store.append("s", [{ type: "label", targetId: target, label: `label ${at}` }]);
    if (what === "unlabel") await store.append("s", [{ type: "label", targetId: target, label: null }]);
    if (what === "name") await store.append("s", [{ type: "session_info", name: `name ${at}` }]);
    if (what === "mark") await store.saveCheckpoint({ ...CHECKPOINT, id: `c${made++}`, version, leafId });
  }
}
