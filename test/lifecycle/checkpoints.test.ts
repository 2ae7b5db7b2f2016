import { expect, test } from "vitest";
import { BranchManager } from "../../src/lifecycle/merge/branch-manager.ts";
import { CheckpointManager } from "../../src/lifecycle/checkpoints/checkpoint-manager.ts";
import { readState } from "../../src/lifecycle/read-state.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import type { Checkpoint, SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { CountedBackend } from "../counted-sandbox.ts";
import { contentsOf, onEveryStore, refuses, say, sessionOf, set, spending, textsOf } from "./branches-sample.ts";

/** A clock that returns these days of a month in order, and then repeats the last one. */
function clockOf(...days: readonly number[]): () => Date {
  const left = [...days];
  return () => new Date(Date.UTC(2030, 0, left.length > 1 ? left.shift() : left[0]));
}

const idsOf = (checkpoints: readonly Checkpoint[]): string[] => checkpoints.map(({ id }) => id);

function counting(prefix = "c"): () => string {
  let made = 0;
  return () => `${prefix}${++made}`;
}

onEveryStore("checkpoints", {
  async "are positions: the log's version, the previous checkpoint, and the caller's metadata"(store) {
    await sessionOf(store, "s", "one", "two");
    const checkpoints = new CheckpointManager(store, { clock: clockOf(1, 2), ids: counting() });
    const first = await checkpoints.create("s", { metadata: { why: "before the risky part" } });
    await say(store, "s", "three");
    const second = await checkpoints.create("s");
    expect(first).toEqual({
      id: "c1",
      sessionId: "s",
      version: 2,
      leafId: "two",
      createdAt: "2030-01-01T00:00:00.000Z",
      parentCheckpointId: null,
      metadata: { why: "before the risky part" },
    });
    expect(second).toMatchObject({ version: 3, leafId: "three", parentCheckpointId: "c1", metadata: {} });
    expect(await checkpoints.list("s")).toEqual([first, second]);
    expect(Object.isFrozen(first) && Object.isFrozen(first.metadata)).toBe(true);
  },

  async "return the earlier state, and change nothing"(store) {
    await sessionOf(store, "s", "one");
    await store.append("s", [spending("two", 7), set("v1", { tone: "formal" })]);
    const before = await readState(store, (await store.head("s")) as SessionHead);
    const checkpoints = new CheckpointManager(store);
    const { id } = await checkpoints.create("s");
    await store.append("s", [spending("three", 100), set("v2", { tone: "funny", more: 1 })]);
    await store.append("s", [
      { type: "leaf", targetId: "one" },
      { type: "session_info", name: "later" },
    ]);
    const contents = await contentsOf(store);
    const state = await checkpoints.restore(id);
    const { updatedAt: _a, spent: _b, name: _c, checkpointId: _d, ...was } = before;
    expect(state).toMatchObject(was);
    expect(state).toMatchObject({ version: 3, leafId: "v1", checkpointId: id, turnCount: 2, totalTokens: 7 });
    expect(state.variables).toEqual({ tone: "formal" });
    expect(await checkpoints.restore(id, { turns: false })).toEqual({ ...state, turns: [] });
    expect(await contentsOf(store)).toEqual(contents);
    expect(Object.isFrozen(state) && Object.isFrozen(state.turns)).toBe(true);
  },

  async "can be created for a session without turns, for one with its leaf before the root, and for a closed one"(
    store,
  ) {
    await sessionOf(store, "s");
    const checkpoints = new CheckpointManager(store);
    const empty = await checkpoints.create("s");
    expect(empty).toMatchObject({ version: 0, leafId: null });
    await say(store, "s", "one");
    await store.append("s", [
      { type: "leaf", targetId: null },
      { type: "status", status: "closed" },
    ]);
    const moved = await checkpoints.create("s");
    expect(moved).toMatchObject({ version: 3, leafId: null });
    for (const { id } of [empty, moved]) expect((await checkpoints.restore(id)).turns).toEqual([]);
  },

  async "beyond the limit are pruned by time, and at the same time in the order of creation"(store) {
    await sessionOf(store, "s", "one");
    const checkpoints = new CheckpointManager(store, {
      maxPerSession: 3,
      clock: clockOf(5, 5, 2, 5, 5, 9),
      ids: counting(),
    });
    const kept: string[][] = [];
    for (let i = 0; i < 6; i++) {
      await checkpoints.create("s");
      kept.push(idsOf(await checkpoints.list("s")));
    }
    expect(kept).toEqual([
      ["c1"],
      ["c1", "c2"],
      ["c3", "c1", "c2"],
      ["c1", "c2", "c4"],
      ["c2", "c4", "c5"],
      ["c4", "c5", "c6"],
    ]);
  },

  async "never prune the new one, even if the clock was set back"(store) {
    await sessionOf(store, "s", "one");
    const checkpoints = new CheckpointManager(store, { maxPerSession: 1, clock: clockOf(9, 3, 1), ids: counting() });
    for (const id of ["c1", "c2", "c3"]) {
      expect((await checkpoints.create("s")).id).toBe(id);
      expect(idsOf(await checkpoints.list("s"))).toEqual([id]);
    }
  },

  async "from which a live branch was forked are kept until the branch is deleted"(store) {
    await sessionOf(store, "s", "one");
    const checkpoints = new CheckpointManager(store, { maxPerSession: 2, ids: counting() });
    const branches = new BranchManager(store);
    await checkpoints.create("s");
    const { sessionId } = await branches.fork("s", "try", { fromCheckpoint: "c1" });
    for (let i = 0; i < 3; i++) await checkpoints.create("s");
    expect(idsOf(await checkpoints.list("s"))).toEqual(["c1", "c4"]);
    await store.delete(sessionId);
    await checkpoints.create("s");
    expect(idsOf(await checkpoints.list("s"))).toEqual(["c4", "c5"]);
  },

  async "created concurrently respect the limit, and do not delete each other"(store) {
    await sessionOf(store, "s", "one");
    const checkpoints = new CheckpointManager(store, { maxPerSession: 3, clock: clockOf(1) });
    await Promise.all(Array.from({ length: 10 }, () => checkpoints.create("s")));
    expect(await checkpoints.list("s")).toHaveLength(3);
    const one = new CheckpointManager(store, { maxPerSession: 1, clock: clockOf(1) });
    await Promise.all(Array.from({ length: 5 }, () => one.create("s")));
    expect(await one.list("s")).toHaveLength(1);
  },

  async "are refused for a missing session, and not found after they are deleted"(store) {
    await sessionOf(store, "s", "one");
    const checkpoints = new CheckpointManager(store, { ids: counting() });
    await refuses(store, () => checkpoints.create("nowhere"), "SESSION_NOT_FOUND");
    await refuses(store, () => checkpoints.restore("nowhere"), "CHECKPOINT_NOT_FOUND");
    await refuses(store, () => checkpoints.create("s", { metadata: { f: (() => 1) as never } }), "INVALID_VALUE");
    await refuses(store, () => checkpoints.create("s", { metadata: JSON.parse('{"__proto__":1}') }), "INVALID_VALUE");
    await checkpoints.create("s");
    expect([await checkpoints.delete("c1"), await checkpoints.delete("c1")]).toEqual([true, false]);
    await checkpoints.create("s");
    await store.delete("s");
    await refuses(store, () => checkpoints.restore("c2"), "CHECKPOINT_NOT_FOUND");
    expect(await checkpoints.list("s")).toEqual([]);
  },

  async "hold the files of a sandbox, and restore them with the conversation"(store) {
    await sessionOf(store, "s", "write a draft");
    const backend = new CountedBackend();
    const sandbox = await backend.open({});
    await sandbox.writeFile("plan.txt", "draft");
    const checkpoints = new CheckpointManager(store);
    const { id } = await checkpoints.create("s", { sandbox });
    await say(store, "s", "rewrite it all");
    await sandbox.writeFile("plan.txt", "worse");
    expect(textsOf(await checkpoints.restore(id))).toEqual(["write a draft"]);
    expect(await textIn(sandbox)).toBe("worse");
    expect(textsOf(await checkpoints.restore(id, { sandbox }))).toEqual(["write a draft"]);
    expect(await textIn(sandbox)).toBe("draft");
    const other = await backend.open({});
    await checkpoints.restore(id, { sandbox: other });
    expect(await textIn(other)).toBe("draft");
  },

  async "free the files when they are deleted or pruned"(store) {
    await sessionOf(store, "s", "one");
    const backend = new CountedBackend();
    const sandbox = await backend.open({});
    const checkpoints = new CheckpointManager(store, { maxPerSession: 2, ids: counting() });
    for (let i = 0; i < 4; i++) await checkpoints.create("s", { sandbox });
    expect(backend.snapshots.size).toBe(2);
    await checkpoints.delete("c4");
    expect(backend.snapshots.size).toBe(1);
  },
});

async function textIn(sandbox: { readFile(path: string): Promise<Uint8Array> }): Promise<string> {
  return new TextDecoder().decode(await sandbox.readFile("plan.txt"));
}

async function withOne(): Promise<{ store: SessionStore; backend: CountedBackend }> {
  const store = await openMemoryStore();
  await sessionOf(store, "s", "one");
  return { store, backend: new CountedBackend() };
}

test("files whose checkpoint could not be saved are freed", async () => {
  const { store, backend } = await withOne();
  const checkpoints = new CheckpointManager(store, { ids: () => "always the same" });
  const sandbox = await backend.open({});
  await checkpoints.create("s");
  await refuses(store, () => checkpoints.create("s", { sandbox }), "CHECKPOINT_EXISTS");
  expect(backend.snapshots.size).toBe(0);
});

test("a checkpoint whose files cannot be freed is kept and pruned later; the new one is created anyway", async () => {
  const { store, backend } = await withOne();
  const sandbox = await backend.open({});
  const checkpoints = new CheckpointManager(store, { maxPerSession: 1, ids: counting() });
  await checkpoints.create("s", { sandbox });
  backend.failAt("delete-snapshot", new Error("the disk is away"));
  await checkpoints.create("s");
  expect(idsOf(await checkpoints.list("s"))).toEqual(["c1", "c2"]);
  await expect(checkpoints.delete("c1")).rejects.toThrow("the disk is away");
  expect(idsOf(await checkpoints.list("s"))).toEqual(["c1", "c2"]);
  backend.before = async () => {};
  await checkpoints.create("s");
  expect(idsOf(await checkpoints.list("s"))).toEqual(["c3"]);
  expect(backend.snapshots.size).toBe(0);
});

test("a checkpoint is created even if the old ones could not be listed", async () => {
  const { store } = await withOne();
  const checkpoints = new CheckpointManager(store, { maxPerSession: 1, ids: counting() });
  await checkpoints.create("s");
  const list = store.list.bind(store);
  store.list = () => Promise.reject(new Error("the disk is away"));
  expect((await checkpoints.create("s")).id).toBe("c2");
  store.list = list;
  expect(idsOf(await checkpoints.list("s"))).toEqual(["c1", "c2"]);
});

test("metadata of more than 16 KiB is refused, and no checkpoint is created: all of a session are read together", async () => {
  const { store } = await withOne();
  const checkpoints = new CheckpointManager(store, { ids: counting() });
  const note = "é".repeat(8 * 1024 - 10);
  await checkpoints.create("s", { metadata: { note } });
  const refused = { code: "TOO_LARGE", message: expect.stringContaining("bytes, more than 16384") };
  await expect(checkpoints.create("s", { metadata: { note: `${note}éééééé` } })).rejects.toMatchObject(refused);
  expect(await checkpoints.list("s")).toHaveLength(1);
});

test("files of another kind of sandbox are refused, and a checkpoint without files leaves a sandbox unchanged", async () => {
  const { store, backend } = await withOne();
  const sandbox = await backend.open({});
  await sandbox.writeFile("plan.txt", "mine");
  const checkpoints = new CheckpointManager(store);
  const held = await checkpoints.create("s", { sandbox: await new CountedBackend().open({}) });
  await refuses(store, () => checkpoints.restore(held.id, { sandbox }), "INVALID_OPTION");
  await checkpoints.restore((await checkpoints.create("s")).id, { sandbox });
  expect(await textIn(sandbox)).toBe("mine");
});

test("a turn added during the snapshot is after the checkpoint", async () => {
  const { store, backend } = await withOne();
  const sandbox = await backend.open({});
  const keep = sandbox.snapshot.bind(sandbox);
  sandbox.snapshot = async () => {
    await say(store, "s", "meanwhile");
    return keep();
  };
  expect(await new CheckpointManager(store).create("s", { sandbox })).toMatchObject({ version: 1, leafId: "one" });
});

test("a caller with the session's head gets its checkpoint at that position, and a head of another session is refused", async () => {
  const { store } = await withOne();
  const head = (await store.head("s")) as SessionHead;
  await say(store, "s", "two");
  const checkpoints = new CheckpointManager(store);
  expect(await checkpoints.create("s", { head })).toMatchObject({ version: 1, leafId: "one" });
  await refuses(store, () => checkpoints.create("other", { head }), "SESSION_NOT_FOUND");
});

test.for([0, -1, 1.5, Number.NaN, "3"])("refuses the limit %s", async (maxPerSession) => {
  const store = await openMemoryStore();
  expect(() => new CheckpointManager(store, { maxPerSession: maxPerSession as number })).toThrowError(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});
