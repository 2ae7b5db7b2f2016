import { describe, expect, test } from "vitest";
import { assistant, calls, result, user } from "../../test/sample-log.ts";
import { contentsOf } from "../../test/sample-tree.ts";
import { SessionTree } from "./session-tree.ts";

async function treeOf(): Promise<SessionTree> {
  const tree = await SessionTree.inMemory();
  await tree.appendMessage(user("list it"), { id: "a" });
  await tree.appendMessage(calls("t"), { id: "b" });
  await tree.appendMessage(result("t", "x".repeat(4000)), { id: "c" });
  await tree.appendMessage(assistant("done"), { id: "d" });
  return tree;
}

const contentsIn = async (tree: SessionTree): Promise<unknown[]> => contentsOf((await tree.buildContext()).messages);

describe("tree.omit, replace and undoEdit", () => {
  test("change the context from here on, and the log keeps the original", async () => {
    const tree = await treeOf();
    const edit = await tree.omit("c", { reason: "a long listing" });
    expect(edit).toMatchObject({ type: "context_edit", targetId: "c", message: null, reason: "a long listing" });
    expect(await contentsIn(tree)).toEqual(["list it", "done"]);
    await tree.replace("d", assistant("done, briefly"));
    expect(await contentsIn(tree)).toEqual(["list it", "done, briefly"]);
    await tree.undoEdit(edit.id);
    expect(await contentsIn(tree)).toHaveLength(4);
    expect((await tree.getEntry("d")) as unknown).toMatchObject({ message: assistant("done") });
  });

  test("take an answer as it was given, and drop what only an answer has", async () => {
    const tree = await treeOf();
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    const edit = await tree.replace("d", { ...assistant("short"), usage, cost: 1, providerData: {} } as never);
    expect(edit.message).toEqual(assistant("short"));
  });

  test("refuse an entry on another branch", async () => {
    const tree = await treeOf();
    await tree.branch("a");
    await expect(tree.omit("d")).rejects.toMatchObject({
      code: "INVALID_ENTRY",
      message: expect.stringContaining("path to the leaf"),
    });
    await expect(tree.omit("nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(tree.undoEdit("a")).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    expect(tree.version).toBe(5);
  });

  test("refuse what an open run has not answered", async () => {
    const tree = await treeOf();
    const own = { guard: { holds: true }, run: "r" } as const;
    await tree.append({ type: "message", message: user("next"), id: "e" }, own);
    await tree.append({ type: "run", runId: "r", phase: "started", before: 1 }, own);
    await expect(tree.omit("e")).rejects.toMatchObject({
      code: "RUN_OPEN",
      message: expect.stringMatching(/"r".*"e"/),
    });
    await tree.omit("c");
    await tree.append({ type: "message", message: calls("u"), id: "f" }, own);
    await tree.omit("e");
    await expect(tree.omit("f")).rejects.toMatchObject({ code: "RUN_OPEN" });
    await tree.append({ type: "message", message: result("u"), id: "g" }, own);
    await expect(tree.replace("g", result("u", "short"))).rejects.toMatchObject({ code: "RUN_OPEN" });
    await tree.append({ type: "message", message: assistant("answered"), id: "h" }, own);
    await tree.replace("g", result("u", "short"));
    await expect(tree.omit("h")).rejects.toMatchObject({ code: "RUN_OPEN" });
    await tree.append({ type: "run", runId: "r", phase: "finished" }, own);
    await tree.omit("h");
  });

  test("are refused as plain appends while a run is open, as those do not look at the run", async () => {
    const tree = await treeOf();
    await tree.append({ type: "run", runId: "r", phase: "started" });
    await expect(tree.append({ type: "context_edit", targetId: "a", message: null })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
  });

  test("stay in effect when a path becomes a separate session", async () => {
    const tree = await treeOf();
    await tree.omit("c");
    const copy = await tree.createBranchedSession(tree.leafId as string);
    expect(await contentsIn(copy)).toEqual(["list it", "done"]);
  });
});

describe("tree.previewEdit", () => {
  test("returns what each request saves, and what the cache loses once", async () => {
    const tree = await treeOf();
    const { version } = tree;
    // The call has 2 tokens, its result 1000; then one token of an answer is left.
    expect(await tree.previewEdit("c")).toEqual({ tokensSaved: 1002, prefixLost: 1 });
    expect(await tree.previewEdit("c", result("t", "xxxx"))).toEqual({ tokensSaved: 999, prefixLost: 2 });
    expect(tree.version).toBe(version);
    const { id } = await tree.omit("c");
    expect(await tree.previewEdit(id)).toEqual({ tokensSaved: -1002, prefixLost: 1003 });
    expect(await tree.previewEdit("c")).toEqual({ tokensSaved: 0, prefixLost: 0 });
  });

  test("is zero for entries that a compaction has replaced", async () => {
    const tree = await treeOf();
    await tree.appendCompaction({ summary: "s", firstKeptEntryId: "d", tokensBefore: 1 });
    expect(await tree.previewEdit("c")).toEqual({ tokensSaved: 0, prefixLost: 0 });
  });

  test("refuses what the edit would refuse", async () => {
    const tree = await treeOf();
    await expect(tree.previewEdit("c", user("x"))).rejects.toMatchObject({ code: "INVALID_ENTRY" });
  });
});
