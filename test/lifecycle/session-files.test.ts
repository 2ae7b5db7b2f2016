import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import "../../src/sandboxes/register-built-in.ts";
import { CheckpointManager } from "../../src/lifecycle/checkpoints/checkpoint-manager.ts";
import {
  checkpointWithFiles,
  restoreWithFiles,
  type SessionFilesOptions,
} from "../../src/lifecycle/checkpoints/session-files.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { localBackend } from "../../src/sandboxes/local/index.ts";
import type { Checkpoint } from "../../src/session/store.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { CountedBackend } from "../counted-sandbox.ts";

let workspace: string;
let manager: SessionManager;
let sessionId: string;

beforeEach(async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "skein-files-")));
  workspace = join(directory, "workspace");
  await mkdir(workspace);
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  manager = new SessionManager({ store: openMemoryStore(), config: { maxCheckpointsPerSession: 3 } });
  sessionId = await placed({ workingDir: workspace });
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await manager[Symbol.asyncDispose]();
    await manager.store.close();
    await rm(directory, { recursive: true, force: true });
  });
});

/** The place in the session's header. */
const asSaid: SessionFilesOptions = { placeOf: ({ sandbox }) => sandbox };

/** A session of ann with this sandbox. */
async function placed(spec: { readonly workingDir?: string }, backend = "local"): Promise<string> {
  const made = await manager.create({ userId: "ann", sandbox: { backend, spec: { ...spec }, handleId: null } });
  return made.sessionId;
}

const write = (text: string): Promise<void> => writeFile(join(workspace, "plan.txt"), text);
const plan = (): Promise<string> => readFile(join(workspace, "plan.txt"), "utf8");
const say = (turnId: string): Promise<void> => manager.addTurn(sessionId, { turnId, role: "user", content: turnId });
const checkpoints = (): Promise<Checkpoint[]> => manager.store.listCheckpoints(sessionId);
const leaf = async (): Promise<string | null> => (await manager.store.head(sessionId))?.leafId ?? null;

/** Checks that a call is refused with a code, and changes no files, leaf or checkpoints. */
async function refused(call: () => Promise<unknown>, code: string): Promise<void> {
  const look = async (): Promise<unknown> => [
    await plan(),
    await leaf(),
    await checkpoints(),
    await readdir(workspace),
  ];
  const before = await look();
  await expect(call()).rejects.toMatchObject({ code });
  expect(await look()).toEqual(before);
}

test("a restore returns the earlier files, and the checkpoint that is made before it returns the later ones", async () => {
  await say("one");
  await write("train");
  const then = await checkpointWithFiles(manager, sessionId, { ...asSaid, metadata: { note: "a plan" } });
  await say("two");
  await write("boat");
  const { state, kept } = await restoreWithFiles(manager, then.id, asSaid);
  expect([await plan(), state.leafId, await leaf()]).toEqual(["train", "one", "one"]);
  expect(kept).toMatchObject({
    leafId: "two",
    metadata: { note: 'before going back to "a plan"', beforeRestoreOf: then.id },
  });
  const again = await restoreWithFiles(manager, kept.id, asSaid);
  expect([await plan(), await leaf()]).toEqual(["boat", "two"]);
  expect(again.kept.metadata["note"]).toBe("before going back to position 2");
  expect(await manager.store.leaseOf(sessionId)).toBeNull();
});

test("the files of a session without a place are where the caller specifies", async () => {
  const { sessionId: id } = await manager.create({ userId: "ann" });
  const here: SessionFilesOptions = { placeOf: () => ({ backend: "local", spec: workspace }) };
  await write("train");
  const then = await checkpointWithFiles(manager, id, here);
  await write("boat");
  await restoreWithFiles(manager, then.id, here);
  expect(await plan()).toBe("train");
  await refused(() => checkpointWithFiles(manager, id, asSaid), "NO_SANDBOX");
});

test("the restored checkpoint is not pruned, even if it is the oldest", async () => {
  await write("train");
  const then = await checkpointWithFiles(manager, sessionId, asSaid);
  const others = [await manager.checkpoint(sessionId), await manager.checkpoint(sessionId)];
  await write("boat");
  const { kept } = await restoreWithFiles(manager, then.id, asSaid);
  expect(await plan()).toBe("train");
  expect((await checkpoints()).map(({ id }) => id)).toEqual([then.id, others[1]?.id, kept.id]);
});

test("files are not restored while a run holds the session, and no run starts in the meantime", async () => {
  await write("train");
  const then = await checkpointWithFiles(manager, sessionId, asSaid);
  await write("boat");
  const lease = await manager.store.lease(sessionId, "a run", 60_000);
  await refused(() => restoreWithFiles(manager, then.id, asSaid), "SESSION_BUSY");
  await lease.release();
  const held = vi.spyOn(manager, "restore").mockImplementationOnce(async (...args) => {
    await expect(manager.store.lease(sessionId, "a run", 1000)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    return manager.restore(...args);
  });
  await restoreWithFiles(manager, then.id, asSaid);
  expect(held).toHaveBeenCalledTimes(2);
  expect(await plan()).toBe("train");
});

test("refuses sessions and checkpoints without files, and changes nothing", async () => {
  await write("train");
  const bare = await manager.checkpoint(sessionId);
  await refused(() => restoreWithFiles(manager, bare.id, asSaid), "INVALID_OPTION");
  await refused(() => restoreWithFiles(manager, "nowhere", asSaid), "CHECKPOINT_NOT_FOUND");
  await refused(() => checkpointWithFiles(manager, "nowhere", asSaid), "SESSION_NOT_FOUND");

  const then = await checkpointWithFiles(manager, sessionId, asSaid);
  for (const call of [restoreWithFiles, checkpointWithFiles]) {
    const code = call === restoreWithFiles ? "CHECKPOINT_NOT_FOUND" : "SESSION_NOT_FOUND";
    const id = call === restoreWithFiles ? then.id : sessionId;
    await refused(() => call(manager, id, { ...asSaid, actor: "bob" }), code);
  }
  await manager.suspend(sessionId);
  await refused(() => restoreWithFiles(manager, then.id, asSaid), "SESSION_SUSPENDED");
  await manager.resume(sessionId);

  await localBackend.deleteSnapshot?.((then.sandboxSnapshot as { snapshot: { id: string } }).snapshot);
  await refused(() => restoreWithFiles(manager, then.id, asSaid), "INVALID_OPTION");
});

test("refuses a place without persistent files or without snapshots, and files of another kind", async () => {
  await write("train");
  const temporary = await placed({});
  await refused(() => checkpointWithFiles(manager, temporary, asSaid), "NO_SANDBOX");
  const unable = Object.assign(new CountedBackend({ snapshot: false }), { keepsFiles: () => true });
  const other = await placed({ workingDir: "/" }, unable.name);
  await refused(() => checkpointWithFiles(manager, other, asSaid), "INVALID_OPTION");
  expect([unable.opens, unable.live.size]).toEqual([1, 0]);

  const able = Object.assign(new CountedBackend(), { keepsFiles: () => true });
  const foreign = await manager.checkpoint(sessionId, { sandbox: await able.open({}) });
  await refused(() => restoreWithFiles(manager, foreign.id, asSaid), "INVALID_OPTION");
});

test("refuses a directory that contains the session store, unless the store is in Skein's home", async () => {
  const files: SessionFilesOptions = { placeOf: () => ({ backend: "local", spec: workspace }) };
  for (const [url, refusal] of [
    [`sqlite:${join(workspace, "sessions.db")}`, "INVALID_OPTION"],
    [`jsonl:${join(workspace, "sessions")}`, "INVALID_OPTION"],
    [`sqlite:${join(workspace, ".skein/skein.db")}`, null],
    [`sqlite:${join(workspace, "../elsewhere.db")}`, null],
  ] as const) {
    vi.stubEnv("SKEIN_HOME", join(workspace, ".skein"));
    await using store = await openStore(url, { create: true });
    await using other = new SessionManager({ store });
    const { sessionId: id } = await other.create({ userId: "ann" });
    const made = checkpointWithFiles(other, id, files);
    if (refusal !== null) await expect(made).rejects.toMatchObject({ code: refusal });
    else {
      await restoreWithFiles(other, (await made).id, files);
      expect(await store.listCheckpoints(id)).toHaveLength(2);
    }
  }
});

test("returns the files that differ between two checkpoints, if both hold comparable ones", async () => {
  const compared = new CheckpointManager(manager.store);
  await write("train");
  const first = await checkpointWithFiles(manager, sessionId, asSaid);
  await write("boat");
  const second = await checkpointWithFiles(manager, sessionId, asSaid);
  expect(await compared.compareFiles(first.id, second.id)).toEqual({
    changes: [{ path: "plan.txt", change: "changed", before: "train", after: "boat" }],
    truncated: false,
  });
  await expect(compared.compareFiles(first.id, "nowhere")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });

  const bare = await compared.create(sessionId);
  const counted = await compared.create(sessionId, { sandbox: await new CountedBackend().open({}) });
  await manager.store.saveCheckpoint({ ...bare, id: "unknown", sandboxSnapshot: { backend: "unknown", snapshot: {} } });
  await localBackend.deleteSnapshot?.((second.sandboxSnapshot as { snapshot: { id: string } }).snapshot);
  for (const [from, to] of [
    [first, bare],
    [bare, first],
    [first, counted],
    [counted, counted],
    [first, second],
    [{ id: "unknown" }, { id: "unknown" }],
  ] as const) {
    expect(await compared.compareFiles(from.id, to.id)).toBeNull();
  }
});
