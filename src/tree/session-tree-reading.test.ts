import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildContext } from "../session/context/context.ts";
import { createHeader } from "../session/log/header.ts";
import type { EntryDraft, EntryOf } from "../session/log/entry.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { calls, result, user } from "../../test/sample-log.ts";
import { branchedTree, contentsOf, shapeOf } from "../../test/sample-tree.ts";
import type { TreeNode } from "../session/log/entry-tree.ts";
import { SessionTree } from "./session-tree.ts";

describe("reading", () => {
  test("callers cannot change the session through returned values", async () => {
    const tree = await branchedTree();
    const before = JSON.stringify(await tree.entries());
    for (const entry of await tree.entries()) expect(Object.isFrozen(entry)).toBe(true);
    (await tree.entries()).pop();
    const root = (await tree.getTree()).pop() as TreeNode;
    expect(() => (root.children as TreeNode[]).pop()).toThrow(TypeError);
    expect(() => Object.assign(root, { label: "mine" })).toThrow(TypeError);
    expect(JSON.stringify(await tree.entries())).toBe(before);
  });

  test("getTree contains entries that are appended after the first call", async () => {
    const tree = await branchedTree();
    await tree.getTree();
    await tree.getChildren("d");
    await tree.appendMessage(user("e"), { id: "e" });
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d", ["e"]]]]);
    expect((await tree.getChildren("d")).map(({ id }) => id)).toEqual(["e"]);
  });

  test("a context is read without other branches and without the entries that a compaction dropped", async () => {
    let read = 0;
    const inner = openMemoryStore();
    const store: SessionStore = Object.create(inner, {
      read: {
        value: async function* (...args: Parameters<SessionStore["read"]>) {
          for await (const entry of inner.read(...args)) {
            read++;
            yield entry;
          }
        },
      },
      ...Object.fromEntries(
        (["head", "getEntry", "path", "settings", "append"] as const).map((name) => [
          name,
          { value: inner[name].bind(inner) },
        ]),
      ),
    });
    const { header } = await inner.create(createHeader());
    const tree = await SessionTree.on(store, header.id);
    const messages = (count: number, prefix: string): EntryDraft[] =>
      Array.from({ length: count }, (_, i) => ({
        type: "message",
        id: `${prefix}${i}`,
        message: user(`${prefix}${i}`),
      }));
    await tree.appendAll(messages(3000, "old"));
    await tree.appendCompaction({ summary: "old things", firstKeptEntryId: "old2990", tokensBefore: 1 });
    await tree.appendMessage(user("fork here"), { id: "fork" });
    await tree.appendAll(messages(3000, "side"));
    await tree.branch("fork");
    await tree.appendMessage(user("new"));
    const context = await tree.buildContext();
    expect(contentsOf(context.messages).slice(1)).toEqual([
      ...messages(3000, "old")
        .slice(2990)
        .map(({ id }) => id),
      "fork here",
      "new",
    ]);
    expect(read).toBeLessThan(500);
  });

  test("a compaction whose first kept entry is not on the path drops everything before it", async () => {
    const tree = await branchedTree();
    await tree.append({ type: "compaction", summary: "all", firstKeptEntryId: "c", tokensBefore: 1 });
    await tree.appendMessage(user("after"));
    expect((await tree.contextEntries()).map(({ type }) => type)).toEqual(["compaction", "message"]);
  });

  test("appendIf checks again if another append comes between the check and its append", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id);
    let checks = 0;
    await tree.appendIf({ type: "session_info", name: "checked" }, async () => {
      if (++checks === 1) await store.append(header.id, [{ type: "message", message: user("in between") }]);
    });
    expect([checks, tree.version, await tree.getName()]).toEqual([2, 2, "checked"]);
  });

  test("reads the appends of another tree of the same session", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const [one, two] = [await SessionTree.on(store, header.id), await SessionTree.on(store, header.id)];
    await one.appendMessage(user("hello"), { id: "hello" });
    expect((await two.getBranch()).map(({ id }) => id)).toEqual(["hello"]);
    await expect(two.append({ type: "session_info", name: "x" }, { expectedVersion: 0 })).rejects.toMatchObject({
      code: "CONFLICT",
    });
  });

  // The tree reads only the entries of the context, in pages; the pure function gets all entries.
  test("builds the same context from pages as the pure function from all entries", async () => {
    const act = fc.oneof(
      { weight: 12, arbitrary: fc.record({ do: fc.constant("say" as const) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("go" as const), to: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("compact" as const), keep: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("undo" as const), which: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("label" as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("set" as const), value: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("call" as const) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("edit" as const), which: fc.nat(), omits: fc.boolean() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("undoEdit" as const), which: fc.nat() }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 300 }), async (acts) => {
        const tree = await SessionTree.inMemory();
        const nodes: string[] = [];
        const compactions: string[] = [];
        const said: string[] = [];
        const edits: string[] = [];
        for (const [index, step] of acts.entries()) {
          const pick = (n: number) => nodes[n % nodes.length] as string;
          if (step.do === "say" || nodes.length === 0) {
            nodes.push((await tree.appendMessage(user(`${index}`))).id);
            said.push(nodes.at(-1) as string);
          } else if (step.do === "call") {
            for (const message of [calls("t"), result("t", `${index}`)]) {
              nodes.push((await tree.appendMessage(message)).id);
              said.push(nodes.at(-1) as string);
            }
          } else if (step.do === "edit") {
            // A verbatim append accepts targets on every path, where an edit has no effect.
            const targetId = said[step.which % said.length] as string;
            const entry = (await tree.getEntry(targetId)) as EntryOf<"message">;
            const message = step.omits ? null : { ...entry.message, content: `edit ${index}` };
            const edit = await tree.append({ type: "context_edit", targetId, message });
            edits.push(edit.id);
            nodes.push(edit.id);
          } else if (step.do === "undoEdit") {
            if (edits.length === 0) continue;
            const undo = edits[step.which % edits.length] as string;
            edits.push((await tree.append({ type: "context_edit", undo })).id);
            nodes.push(edits.at(-1) as string);
          } else if (step.do === "go") await tree.branch(step.to % 20 === 0 ? null : pick(step.to));
          else if (step.do === "label") await tree.setLabel(pick(index), `${index}`);
          else if (step.do === "set") nodes.push((await tree.setVariables({ [`v${step.value % 3}`]: step.value })).id);
          else if (step.do === "undo" && compactions.length > 0)
            await tree.undoCompaction(compactions[step.which % compactions.length]);
          else if (step.do === "compact") {
            compactions.push(
              (
                await tree.append({
                  type: "compaction",
                  summary: `s${index}`,
                  firstKeptEntryId: pick(step.keep),
                  tokensBefore: 1,
                })
              ).id,
            );
            nodes.push(compactions.at(-1) as string);
          }
        }
        const entries = await tree.entries();
        expect(await tree.buildContext()).toEqual(buildContext(entries));
        const other = nodes[acts.length % nodes.length] as string;
        expect(await tree.buildContext(other)).toEqual(buildContext(entries, other));
      }),
      { numRuns: 60 },
    );
  });
});
