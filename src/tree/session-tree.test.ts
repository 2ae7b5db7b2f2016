import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildContext } from "../session/context.ts";
import { createHeader } from "../session/header.ts";
import type { SessionHooks } from "../session/hooks.ts";
import type { Message } from "../session/message.ts";
import type { EntryDraft } from "../session/entry.ts";
import type { SessionStore } from "../session/store.ts";
import type { TreeNode } from "../session/tree.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionTree } from "./session-tree.ts";

const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

/** a – b – c, and d beside b; the leaf at d. */
async function branched(): Promise<SessionTree> {
  const tree = await SessionTree.inMemory("/project");
  await tree.appendMessage(user("a"), { id: "a" });
  await tree.appendMessage(assistant("b"), { id: "b" });
  await tree.appendMessage(user("c"), { id: "c" });
  await tree.branch("a");
  await tree.appendMessage(assistant("d"), { id: "d" });
  return tree;
}

function shape(nodes: readonly TreeNode[]): unknown[] {
  return nodes.map(({ entry, children }) => [entry.id, ...shape(children)]);
}

const contents = (messages: readonly Message[]) => messages.map((message) => message.content);

describe("appending", () => {
  test("resolves to the stored entry and moves the leaf and the version", async () => {
    const tree = await SessionTree.inMemory();
    const entry = await tree.appendMessage(user("hello"), { id: "first" });
    expect(entry).toMatchObject({ type: "message", id: "first", parentId: null, seq: 0 });
    expect([tree.leafId, tree.version]).toEqual(["first", 1]);
  });

  test("has a method for each kind of node, and each lands on the path", async () => {
    const tree = await SessionTree.inMemory();
    const { id: firstKeptEntryId } = await tree.appendMessage(user("hello"));
    await tree.appendModelChange("offline", "offline");
    await tree.appendThinkingLevelChange("high");
    await tree.setVariables({ colour: "red", size: 3 });
    await tree.setVariables({}, ["size"]);
    await tree.setSettings({ systemPrompt: "Be brief.", activeTools: ["read"] });
    await tree.appendCustom("mine", { any: "thing" });
    await tree.appendCustomMessage({ customType: "mine", content: "note", display: false });
    await tree.appendCompaction({ summary: "so far", firstKeptEntryId, tokensBefore: 7 });
    expect((await tree.getBranch()).map(({ type }) => type)).toEqual([
      "message",
      "model_change",
      "thinking_level_change",
      "variables",
      "variables",
      "variables",
      "custom",
      "custom_message",
      "compaction",
    ]);
    expect(await tree.buildContext()).toMatchObject({
      thinkingLevel: "high",
      model: { provider: "offline", modelId: "offline" },
      variables: { colour: "red" },
      systemPrompt: "Be brief.",
      activeTools: ["read"],
    });
  });

  test("lands several entries together or not at all", async () => {
    const tree = await SessionTree.inMemory();
    const bad = { type: "message", message: { role: "nobody", content: "x" } } as never;
    await expect(tree.appendAll([{ type: "message", message: user("a") }, bad])).rejects.toMatchObject({
      code: "INVALID_ENTRY",
    });
    expect([tree.version, await tree.entries()]).toEqual([0, []]);
  });

  test("at once from many callers makes one path without a gap", async () => {
    const tree = await SessionTree.inMemory();
    await Promise.all(Array.from({ length: 50 }, (_, i) => tree.appendMessage(user(`${i}`))));
    expect(await tree.getBranch()).toHaveLength(50);
    expect(tree.version).toBe(50);
  });
});

describe("navigating", () => {
  test("moves the leaf, keeps what was left, and survives opening the session again", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id);
    await tree.appendMessage(user("a"), { id: "a" });
    await tree.appendMessage(assistant("b"), { id: "b" });
    await tree.branch("a");
    const again = await SessionTree.on(store, header.id);
    expect(again.leafId).toBe("a");
    expect((await again.entries()).map(({ type }) => type)).toEqual(["message", "message", "leaf"]);
  });

  test("shows branches in the order of their appends", async () => {
    expect(shape(await (await branched()).getTree())).toEqual([["a", ["b", ["c"]], ["d"]]]);
  });

  test("before the root makes the next node a new root with an empty context", async () => {
    const tree = await branched();
    await tree.branch(null);
    expect((await tree.buildContext()).messages).toEqual([]);
    await tree.appendMessage(user("new"), { id: "new" });
    expect(shape(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d"]], ["new"]]);
    expect((await tree.getChildren(null)).map(({ id }) => id)).toEqual(["a", "new"]);
  });

  test("to an unknown entry is refused by name and changes nothing", async () => {
    const tree = await branched();
    const { version } = tree;
    await expect(tree.branch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY", entryId: "nowhere" });
    await expect(tree.getBranch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.buildContext("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    expect([tree.leafId, (await tree.refresh()).version]).toEqual(["d", version]);
  });

  test("to a fact is refused", async () => {
    const tree = await branched();
    const label = await tree.setLabel("a", "start");
    await expect(tree.branch(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    await expect(tree.buildContext(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
  });

  test("with a summary writes it where the leaf went, naming the leaf that was left", async () => {
    const tree = await branched();
    const entry = await tree.branchWithSummary("b", "d was a dead end", { lost: 1 });
    expect(entry).toMatchObject({ type: "branch_summary", parentId: "b", fromId: "d", details: { lost: 1 } });
    expect(contents((await tree.buildContext()).messages).join("\n")).toContain("d was a dead end");
  });

  test("gives the context of another node without moving there", async () => {
    const tree = await branched();
    expect(contents((await tree.buildContext("c")).messages)).toEqual(["a", "b", "c"]);
    expect(tree.leafId).toBe("d");
  });

  test("lets labels and names of the latest entry win, whatever the branch", async () => {
    const tree = await branched();
    await tree.setLabel("b", "old");
    await tree.branch("c");
    await tree.setLabel("b", "new");
    await tree.setLabel("a", "gone");
    await tree.setLabel("a", null);
    await tree.setName("first");
    await tree.setName("second");
    await tree.branch("d");
    expect([await tree.getLabel("b"), await tree.getLabel("a"), await tree.getName()]).toEqual(["new", null, "second"]);
    expect((await tree.getTree())[0]?.children[0]?.label).toBe("new");
  });

  test("finds the leaf, an entry and its children", async () => {
    const tree = await branched();
    expect((await tree.getLeaf())?.id).toBe("d");
    expect((await tree.getEntry("c"))?.parentId).toBe("b");
    expect(await tree.getEntry("nowhere")).toBeNull();
    expect((await tree.getChildren("a")).map(({ id }) => id)).toEqual(["b", "d"]);
  });
});

describe("pruning", () => {
  test("hides a side branch for good, and the log keeps it", async () => {
    const tree = await branched();
    await tree.pruneBranch("b");
    expect(shape(await tree.getTree())).toEqual([["a", ["d"]]]);
    expect((await tree.getChildren("a")).map(({ id }) => id)).toEqual(["d"]);
    expect((await tree.entries()).some(({ id }) => id === "c")).toBe(true);
  });

  test("is refused on the active path, for an unknown entry and for a fact", async () => {
    const tree = await branched();
    const label = await tree.setLabel("b", "x");
    await expect(tree.pruneBranch("a")).rejects.toMatchObject({ code: "ACTIVE_PATH" });
    await expect(tree.pruneBranch("d")).rejects.toMatchObject({ code: "ACTIVE_PATH" });
    await expect(tree.pruneBranch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.pruneBranch(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    expect(shape(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d"]]]);
  });
});

describe("a branched session", () => {
  test("holds only the path, with ids and labels kept and a link back, and leaves its source alone", async () => {
    const tree = await branched();
    await tree.setLabel("a", "start");
    await tree.setLabel("d", "elsewhere");
    await tree.setLabel("b", "old");
    await tree.setLabel("b", "middle");
    await tree.setLabel("c", "taken off");
    await tree.setLabel("c", null);
    const { version } = tree;
    const copy = await tree.createBranchedSession("c", { id: "copy" });
    expect(copy.id).toBe("copy");
    expect((await copy.getBranch()).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect([...(await copy.getLabels())]).toEqual([
      ["a", "start"],
      ["b", "middle"],
    ]);
    expect(copy.header.lineage).toMatchObject({ parents: [tree.id], kind: "op_fork" });
    expect(copy.header.forkedFrom).toEqual({ sessionId: tree.id, entryId: "c", version: 3 });
    expect([tree.leafId, (await tree.refresh()).version]).toEqual(["d", version]);
  });
});

describe("looking into a compaction", () => {
  test("shows what its summary stands for and what it kept, and refuses what is none", async () => {
    const tree = await SessionTree.inMemory();
    for (const id of ["1", "2", "3", "4"]) await tree.appendMessage(user(id), { id });
    const { id } = await tree.appendCompaction({ summary: "so far", firstKeptEntryId: "3", tokensBefore: 4 });
    await tree.appendMessage(user("5"), { id: "5" });
    const { dropped, kept } = await tree.inspectCompaction(id);
    expect([dropped, kept].map((entries) => entries.map((entry) => entry.id))).toEqual([
      ["1", "2"],
      ["3", "4"],
    ]);
    const keepsNothing = await tree.appendCompaction({ summary: "all", firstKeptEntryId: "nowhere", tokensBefore: 5 });
    expect((await tree.inspectCompaction(keepsNothing.id)).kept).toEqual([]);
    await expect(tree.inspectCompaction("5")).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    await expect(tree.inspectCompaction("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
  });
});

describe("undoing a compaction", () => {
  test("brings back what it hid, keeps later turns, and falls back to the compaction before", async () => {
    const tree = await SessionTree.inMemory();
    for (const id of ["1", "2", "3"]) await tree.appendMessage(user(id), { id });
    await tree.appendCompaction({ summary: "first", firstKeptEntryId: "3", tokensBefore: 3 });
    await tree.appendMessage(user("4"), { id: "4" });
    await tree.appendCompaction({ summary: "second", firstKeptEntryId: "4", tokensBefore: 4 });
    await tree.appendMessage(user("5"));
    const seen = async () =>
      contents((await tree.buildContext()).messages).map((text) => /first|second/.exec(String(text))?.[0] ?? text);
    expect(await seen()).toEqual(["second", "4", "5"]);
    await tree.undoCompaction();
    expect(await seen()).toEqual(["first", "3", "4", "5"]);
    await tree.undoCompaction();
    expect(await seen()).toEqual(["1", "2", "3", "4", "5"]);
    await expect(tree.undoCompaction()).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.undoCompaction("1")).rejects.toMatchObject({ code: "INVALID_ENTRY" });
  });
});

describe("hooks", () => {
  test("run around navigation and forks; the first cancel wins and nothing is written", async () => {
    const seen: string[] = [];
    const watch: SessionHooks = {
      beforeTree: ({ targetId }) => void seen.push(`before ${targetId}`),
      tree: ({ fromId, targetId }) => void seen.push(`${fromId} to ${targetId}`),
      fork: ({ newSessionId }) => void seen.push(`fork ${newSessionId}`),
    };
    const refuse: SessionHooks = {
      beforeTree: ({ targetId }) => (targetId === null ? { cancel: true, reason: "stay" } : undefined),
    };
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id, { hooks: [watch, refuse] });
    await tree.appendMessage(user("a"), { id: "a" });
    await tree.appendMessage(user("b"), { id: "b" });
    await tree.branch("a");
    await expect(tree.branch(null)).rejects.toMatchObject({
      code: "CANCELLED",
      message: expect.stringContaining("stay"),
    });
    await tree.createBranchedSession("a", { id: "copy" });
    expect(seen).toEqual(["before a", "b to a", "before null", "fork copy"]);
    expect(tree.leafId).toBe("a");
  });

  test("may supply the summary of the branch that is left; one that throws is reported and skipped", async () => {
    const reports: unknown[] = [];
    const failing: SessionHooks = { beforeTree: () => Promise.reject(new Error("boom")) };
    const summing: SessionHooks = { beforeTree: () => ({ summary: "from the handler" }) };
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id, {
      hooks: [failing, summing],
      onHookError: (error, hook) => void reports.push([String(error), hook]),
    });
    await tree.appendMessage(user("a"), { id: "a" });
    await tree.appendMessage(user("b"), { id: "b" });
    await tree.branch("a");
    expect(await tree.getLeaf()).toMatchObject({ type: "branch_summary", summary: "from the handler", fromId: "b" });
    expect(reports).toEqual([["Error: boom", "beforeTree"]]);
  });
});

describe("reading", () => {
  test("never hands out what a caller could change the session with", async () => {
    const tree = await branched();
    const before = JSON.stringify(await tree.entries());
    for (const entry of await tree.entries()) expect(Object.isFrozen(entry)).toBe(true);
    (await tree.entries()).pop();
    (await tree.getTree()).pop();
    expect(JSON.stringify(await tree.entries())).toBe(before);
  });

  test("keeps up with what is appended after the tree was first read", async () => {
    const tree = await branched();
    await tree.getTree();
    await tree.getChildren("d");
    await tree.appendMessage(user("e"), { id: "e" });
    expect(shape(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d", ["e"]]]]);
    expect((await tree.getChildren("d")).map(({ id }) => id)).toEqual(["e"]);
  });

  test("costs what the context holds: other branches are jumped over, and what a compaction dropped is not read", async () => {
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
        (["head", "getEntry", "path", "append"] as const).map((name) => [name, { value: inner[name].bind(inner) }]),
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
    expect(contents(context.messages).slice(1)).toEqual([
      ...messages(3000, "old")
        .slice(2990)
        .map(({ id }) => id),
      "fork here",
      "new",
    ]);
    expect(read).toBeLessThan(500);
  });

  test("leaves out everything before a compaction whose first kept entry is not on the path", async () => {
    const tree = await branched();
    await tree.appendCompaction({ summary: "all", firstKeptEntryId: "c", tokensBefore: 1 });
    await tree.appendMessage(user("after"));
    expect((await tree.contextEntries()).map(({ type }) => type)).toEqual(["compaction", "message"]);
  });

  test("looks again when someone appends between a check and the append that depends on it", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id);
    let checks = 0;
    await tree.appendIf({ type: "session_info", name: "checked" }, async () => {
      if (++checks === 1) await store.append(header.id, [{ type: "message", message: user("in between") }]);
    });
    expect([checks, tree.version, await tree.getName()]).toEqual([2, 2, "checked"]);
  });

  test("sees what another opener of the same session appended", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const [one, two] = [await SessionTree.on(store, header.id), await SessionTree.on(store, header.id)];
    await one.appendMessage(user("hello"), { id: "hello" });
    expect((await two.getBranch()).map(({ id }) => id)).toEqual(["hello"]);
    await expect(two.append({ type: "session_info", name: "x" }, { expectedVersion: 0 })).rejects.toMatchObject({
      code: "CONFLICT",
    });
  });

  // The tree reads only what the context needs, page by page; the pure function has all entries before it.
  test("gives the same context page by page as the pure function over all entries", async () => {
    const act = fc.oneof(
      { weight: 12, arbitrary: fc.record({ do: fc.constant("say" as const) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("go" as const), to: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("compact" as const), keep: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("undo" as const), which: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("label" as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("set" as const), value: fc.nat() }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 300 }), async (acts) => {
        const tree = await SessionTree.inMemory();
        const nodes: string[] = [];
        const compactions: string[] = [];
        for (const [index, step] of acts.entries()) {
          const pick = (n: number) => nodes[n % nodes.length] as string;
          if (step.do === "say" || nodes.length === 0) nodes.push((await tree.appendMessage(user(`${index}`))).id);
          else if (step.do === "go") await tree.branch(step.to % 20 === 0 ? null : pick(step.to));
          else if (step.do === "label") await tree.setLabel(pick(index), `${index}`);
          else if (step.do === "set") nodes.push((await tree.setVariables({ [`v${step.value % 3}`]: step.value })).id);
          else if (step.do === "undo" && compactions.length > 0)
            await tree.undoCompaction(compactions[step.which % compactions.length]);
          else if (step.do === "compact") {
            compactions.push(
              (
                await tree.appendCompaction({
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
