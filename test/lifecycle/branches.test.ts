import { expect, test } from "vitest";
import { BranchManager } from "../../src/lifecycle/merge/branch-manager.ts";
import { CheckpointManager } from "../../src/lifecycle/checkpoints/checkpoint-manager.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { contentsOf, entriesOf, onEveryStore, refuses, say, sessionOf, set, textsOf } from "./branches-sample.ts";

onEveryStore("a branch", {
  async "is a new active session with the source's turns, and records its source"(store) {
    await sessionOf(store, "s", "one", "two");
    await store.append("s", [set("v", { k: 1 })]);
    const before = await contentsOf(store);
    const branches = new BranchManager(store, { ids: () => "b", clock: () => new Date("2030-01-01T00:00:00.000Z") });
    const state = await branches.fork("s", "try");
    expect(state).toMatchObject({
      sessionId: "b",
      userId: "ann",
      status: "active",
      parentSessionId: "s",
      branchName: "try",
      createdAt: "2030-01-01T00:00:00.000Z",
      metadata: { plan: "free" },
      variables: { k: 1 },
    });
    expect(textsOf(state)).toEqual(["one", "two"]);
    const { header } = (await store.head("b")) as SessionHead;
    expect(header.forkedFrom).toEqual({ sessionId: "s", entryId: "v", version: 3, branchName: "try" });
    expect(header.lineage).toMatchObject({ parents: ["s"], kind: "op_fork" });
    await store.delete("b");
    expect(await contentsOf(store)).toEqual(before);
  },

  async "starts at a checkpoint, with its leaf and variables"(store) {
    await sessionOf(store, "s", "one", "two");
    await store.append("s", [set("v", { k: 1 })]);
    await store.append("s", [{ type: "leaf", targetId: "one" }]);
    const { id } = await new CheckpointManager(store).create("s");
    await store.append("s", [set("w", { k: 2 })]);
    await say(store, "s", "three");
    const branches = new BranchManager(store);
    const state = await branches.fork("s", "try", { fromCheckpoint: id });
    expect(textsOf(state)).toEqual(["one"]);
    expect(state).toMatchObject({ leafId: "one", variables: {} });
    expect((await entriesOf(store, state.sessionId)).map((entry) => entry.id)).not.toContain("three");
  },

  async "of an empty checkpoint is empty"(store) {
    await sessionOf(store, "s");
    const { id } = await new CheckpointManager(store).create("s");
    await say(store, "s", "one");
    const state = await new BranchManager(store).fork("s", "try", { fromCheckpoint: id });
    expect(state).toMatchObject({ turns: [], leafId: null, version: 0 });
  },

  async "starts at an entry, at a fact, or before the root"(store) {
    await sessionOf(store, "s", "one", "two");
    await store.append("s", [{ type: "leaf", id: "back", targetId: "one" }]);
    await say(store, "s", "three");
    const branches = new BranchManager(store);
    expect(textsOf(await branches.fork("s", "a", { at: "two" }))).toEqual(["one", "two"]);
    expect(textsOf(await branches.fork("s", "b", { at: "back" }))).toEqual(["one"]);
    expect(await branches.fork("s", "c", { at: null })).toMatchObject({ turns: [], version: 0 });
    expect(await branches.fork("s", "d", { turns: false })).toMatchObject({ turns: [], turnCount: 2 });
  },

  async "at an entry other than the leaf has its leaf there"(store) {
    await sessionOf(store, "s", "one", "two");
    const aside = { type: "message", id: "aside", message: { role: "user", content: "aside" } } as const;
    await store.append("s", [aside], { onto: "one" });
    const state = await new BranchManager(store).fork("s", "try", { at: "aside" });
    expect(state.leafId).toBe("aside");
    expect(textsOf(state)).toEqual(["one", "aside"]);
  },

  async "of a session that is closed, expired or suspended is active"(store) {
    const branches = new BranchManager(store);
    for (const status of ["closed", "expired", "suspended"] as const) {
      await sessionOf(store, status, "one");
      await store.append(status, [{ type: "status", status }]);
      const { sessionId, status: forked } = await branches.fork(status, "try");
      expect(forked).toBe("active");
      await store.append(sessionId, [{ type: "session_info", name: "goes on" }], { guard: { status: "active" } });
      expect((await store.head(status))?.status).toBe(status);
    }
  },

  async "can be created for another user"(store) {
    await sessionOf(store, "s", "one");
    const branches = new BranchManager(store);
    expect((await branches.fork("s", "try", { userId: "bob" })).userId).toBe("bob");
    expect((await branches.fork("s", "try", { userId: null })).userId).toBe(null);
  },

  async "is refused beyond the limit, also for concurrent forks; a deleted one does not count"(store) {
    await sessionOf(store, "s", "one");
    const branches = new BranchManager(store, { maxPerSession: 3 });
    const tries = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => branches.fork("s", `b${i}`)));
    const made = tries.filter((each) => each.status === "fulfilled");
    expect(made).toHaveLength(3);
    await refuses(store, () => branches.fork("s", "more"), "CAPACITY");
    await store.delete(made[0]?.value.sessionId as string);
    expect((await branches.fork("s", "more")).branchName).toBe("more");
  },

  async "is refused for a missing session, entry or checkpoint, with nothing changed"(store) {
    await sessionOf(store, "s", "one");
    await sessionOf(store, "other", "two");
    const checkpoint = await new CheckpointManager(store).create("other");
    const branches = new BranchManager(store);
    await refuses(store, () => branches.fork("nowhere", "try"), "SESSION_NOT_FOUND");
    await refuses(store, () => branches.fork("s", "try", { at: "two" }), "UNKNOWN_ENTRY");
    await refuses(store, () => branches.fork("s", "try", { fromCheckpoint: "nowhere" }), "CHECKPOINT_NOT_FOUND");
    await refuses(store, () => branches.fork("s", "try", { fromCheckpoint: checkpoint.id }), "CHECKPOINT_NOT_FOUND");
    await refuses(store, () => branches.fork("s", "try", { fromCheckpoint: "x", at: "one" }), "INVALID_OPTION");
    for (const name of ["", "  ", "x".repeat(600), undefined, 7]) {
      await refuses(store, () => branches.fork("s", name as string), "INVALID_OPTION");
    }
    await store.delete("s");
    await refuses(store, () => branches.fork("s", "try"), "SESSION_NOT_FOUND");
  },
});

test("an incomplete branch is deleted, and does not count", async () => {
  const store = await openMemoryStore();
  await sessionOf(store, "s", "one");
  await store.append("s", [{ type: "status", status: "closed" }]);
  const append = store.append.bind(store);
  store.append = async () => {
    throw new Error("the disk is full");
  };
  const branches = new BranchManager(store, { maxPerSession: 1 });
  await expect(branches.fork("s", "try")).rejects.toThrow("the disk is full");
  store.append = append;
  expect((await branches.fork("s", "try")).status).toBe("active");
});

test.for([-1, 1.5, Number.NaN, "3"])("refuses the limit %s", async (maxPerSession) => {
  const store = await openMemoryStore();
  expect(() => new BranchManager(store, { maxPerSession: maxPerSession as number })).toThrowError(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});
