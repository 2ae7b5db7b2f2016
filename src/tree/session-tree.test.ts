import { describe, expect, test } from "vitest";
import { createHeader } from "../session/log/header.ts";
import type { SessionHooks } from "../session/context/hooks.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { assistant, user } from "../../test/sample-log.ts";
import { branchedTree, contentsOf, shapeOf } from "../../test/sample-tree.ts";
import { SessionTree } from "./session-tree.ts";

describe("appending", () => {
  test("resolves to the stored entry and moves the leaf and the version", async () => {
    const tree = await SessionTree.inMemory();
    const entry = await tree.appendMessage(user("hello"), { id: "first" });
    expect(entry).toMatchObject({ type: "message", id: "first", parentId: null, seq: 0 });
    expect([tree.leafId, tree.version]).toEqual(["first", 1]);
  });

  test("has a method for each kind of node, which appends it to the path", async () => {
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

  test("appendAll appends several entries atomically", async () => {
    const tree = await SessionTree.inMemory();
    const bad = { type: "message", message: { role: "nobody", content: "x" } } as never;
    await expect(tree.appendAll([{ type: "message", message: user("a") }, bad])).rejects.toMatchObject({
      code: "INVALID_ENTRY",
    });
    expect([tree.version, await tree.entries()]).toEqual([0, []]);
  });

  test("concurrent appends make one path without a gap", async () => {
    const tree = await SessionTree.inMemory();
    await Promise.all(Array.from({ length: 50 }, (_, i) => tree.appendMessage(user(`${i}`))));
    expect(await tree.getBranch()).toHaveLength(50);
    expect(tree.version).toBe(50);
  });

  test("records its user as the author of appends, except those of a run under its lease", async () => {
    const store = openMemoryStore();
    const { header } = await store.create(createHeader());
    const tree = await SessionTree.on(store, header.id, { by: "ada" });
    const lease = await store.lease(header.id, "run", 1000);
    const said = await tree.appendMessage(user("a"));
    const written = await tree.append(
      { type: "message", message: assistant("b") },
      { guard: { leaseToken: lease.token } },
    );
    expect([said.by, written.by]).toEqual(["ada", undefined]);
  });
});

describe("navigating", () => {
  test("moves the leaf, keeps the old branch, and both are the same after reopening", async () => {
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

  test("returns branches in the order of their appends", async () => {
    expect(shapeOf(await (await branchedTree()).getTree())).toEqual([["a", ["b", ["c"]], ["d"]]]);
  });

  test("branch(null) makes the next node a new root with an empty context", async () => {
    const tree = await branchedTree();
    await tree.branch(null);
    expect((await tree.buildContext()).messages).toEqual([]);
    await tree.appendMessage(user("new"), { id: "new" });
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d"]], ["new"]]);
    expect((await tree.getChildren(null)).map(({ id }) => id)).toEqual(["a", "new"]);
  });

  test("branch refuses an unknown entry and changes nothing", async () => {
    const tree = await branchedTree();
    const { version } = tree;
    await expect(tree.branch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY", entryId: "nowhere" });
    await expect(tree.getBranch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.buildContext("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    expect([tree.leafId, (await tree.refresh()).version]).toEqual(["d", version]);
  });

  test("branch refuses a fact", async () => {
    const tree = await branchedTree();
    const label = await tree.setLabel("a", "start");
    await expect(tree.branch(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    await expect(tree.buildContext(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
  });

  test("branchWithSummary appends the summary at the new leaf, with the id of the old leaf", async () => {
    const tree = await branchedTree();
    const entry = await tree.branchWithSummary("b", "d was a dead end", { lost: 1 });
    expect(entry).toMatchObject({ type: "branch_summary", parentId: "b", fromId: "d", details: { lost: 1 } });
    expect(contentsOf((await tree.buildContext()).messages).join("\n")).toContain("d was a dead end");
  });

  test("buildContext returns the context of another node without moving the leaf", async () => {
    const tree = await branchedTree();
    expect(contentsOf((await tree.buildContext("c")).messages)).toEqual(["a", "b", "c"]);
    expect(tree.leafId).toBe("d");
  });

  test("the latest label and name apply, whatever branch they were set on", async () => {
    const tree = await branchedTree();
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
    const tree = await branchedTree();
    expect((await tree.getLeaf())?.id).toBe("d");
    expect((await tree.getEntry("c"))?.parentId).toBe("b");
    expect(await tree.getEntry("nowhere")).toBeNull();
    expect((await tree.getChildren("a")).map(({ id }) => id)).toEqual(["b", "d"]);
  });
});

describe("pruning", () => {
  test("hides a side branch, whose entries stay in the log", async () => {
    const tree = await branchedTree();
    await tree.pruneBranch("b");
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["d"]]]);
    expect((await tree.getChildren("a")).map(({ id }) => id)).toEqual(["d"]);
    expect((await tree.entries()).some(({ id }) => id === "c")).toBe(true);
  });

  test("is refused for an entry of the active path, an unknown entry and a fact", async () => {
    const tree = await branchedTree();
    const label = await tree.setLabel("b", "x");
    await expect(tree.pruneBranch("a")).rejects.toMatchObject({ code: "ACTIVE_PATH" });
    await expect(tree.pruneBranch("d")).rejects.toMatchObject({ code: "ACTIVE_PATH" });
    await expect(tree.pruneBranch("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.pruneBranch(label.id)).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d"]]]);
  });

  test("is refused only for entries above or below the position of a started run", async () => {
    const tree = await branchedTree();
    await tree.branch("b");
    await tree.append({ type: "run", runId: "r", phase: "started" });
    await tree.branch("a");
    await tree.appendMessage(user("beside"), { id: "e" });
    await tree.branch("d");
    for (const entryId of ["b", "c"]) {
      const refused = { code: "SESSION_BUSY", message: expect.stringMatching(/^Run r of session .* is open/) };
      await expect(tree.pruneBranch(entryId)).rejects.toMatchObject(refused);
    }
    await tree.pruneBranch("e");
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["b", ["c"]], ["d"]]]);
    await tree.append({ type: "run", runId: "r", phase: "finished" });
    await tree.pruneBranch("b");
    expect(shapeOf(await tree.getTree())).toEqual([["a", ["d"]]]);
  });
});

describe("a branched session", () => {
  test("has only the path with its ids and labels and a link to the source, which is not changed", async () => {
    const tree = await branchedTree();
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

describe("inspecting a compaction", () => {
  test("returns the replaced and the kept entries, and refuses other entries", async () => {
    const tree = await SessionTree.inMemory();
    for (const id of ["1", "2", "3", "4"]) await tree.appendMessage(user(id), { id });
    const { id } = await tree.appendCompaction({ summary: "so far", firstKeptEntryId: "3", tokensBefore: 4 });
    await tree.appendMessage(user("5"), { id: "5" });
    const { dropped, kept } = await tree.inspectCompaction(id);
    expect([dropped, kept].map((entries) => entries.map((entry) => entry.id))).toEqual([
      ["1", "2"],
      ["3", "4"],
    ]);
    // Copies and imports may bring such a compaction.
    const all = { type: "compaction", summary: "all", firstKeptEntryId: "nowhere", tokensBefore: 5 } as const;
    const keepsNothing = await tree.append(all);
    expect((await tree.inspectCompaction(keepsNothing.id)).kept).toEqual([]);
    await expect(tree.inspectCompaction("5")).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    await expect(tree.inspectCompaction("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
  });
});

test("a compaction that keeps the context from an entry beside the path is refused, and nothing is appended", async () => {
  const tree = await SessionTree.inMemory();
  await tree.appendMessage(user("1"), { id: "1" });
  await tree.appendMessage(user("side"), { id: "side" });
  await tree.branch("1");
  await tree.appendMessage(user("2"), { id: "2" });
  const { version } = tree;
  const keeping = (firstKeptEntryId: string) =>
    tree.appendCompaction({ summary: "s", firstKeptEntryId, tokensBefore: 1 });
  await expect(keeping("side")).rejects.toMatchObject({
    code: "INVALID_ENTRY",
    message: expect.stringMatching(/^Entry "side" is not on the path of the compaction in session /),
  });
  await expect(keeping("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
  expect(tree.version).toBe(version);
  expect(await keeping("1")).toMatchObject({ type: "compaction", firstKeptEntryId: "1" });
});

describe("undoing a compaction", () => {
  test("restores the replaced entries, keeps later turns, and puts the previous compaction in force", async () => {
    const tree = await SessionTree.inMemory();
    for (const id of ["1", "2", "3"]) await tree.appendMessage(user(id), { id });
    await tree.appendCompaction({ summary: "first", firstKeptEntryId: "3", tokensBefore: 3 });
    await tree.appendMessage(user("4"), { id: "4" });
    await tree.appendCompaction({ summary: "second", firstKeptEntryId: "4", tokensBefore: 4 });
    await tree.appendMessage(user("5"));
    const seen = async () =>
      contentsOf((await tree.buildContext()).messages).map((text) => /first|second/.exec(String(text))?.[0] ?? text);
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
  test("run around navigation and forks; the first that cancels prevents the write", async () => {
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

  test("can supply the summary of the abandoned branch; a hook that throws is reported and skipped", async () => {
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
