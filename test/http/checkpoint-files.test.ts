import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import "../../src/sandboxes/register-built-in.ts";
import { offline } from "../../src/models/index.ts";
import { workspaceTools } from "../../src/sandboxes/index.ts";
import { CountedBackend } from "../counted-sandbox.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { allOf, type Offer, openRunServer, type RunServer } from "./runs-server.ts";
import { readContract } from "./server-contract.ts";
import { startTestServer } from "./server-support.ts";

let directory: string;
let workspace: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-http-files-")));
  workspace = join(directory, "workspace");
  await mkdir(workspace);
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
});

const serve = (offer: Offer = {}): Promise<RunServer> =>
  openRunServer({ place: { backend: "local", spec: workspace, perUser: false }, ...offer });
const write = (text: string): Promise<void> => writeFile(join(workspace, "plan.txt"), text);
const plan = (): Promise<string> => readFile(join(workspace, "plan.txt"), "utf8");
const snapshots = (): Promise<string[]> => readdir(join(directory, "home/snapshots"));

test("files written between two checkpoints are in their diff, and a restore undoes them on the disk", async () => {
  const helper = createAgent({ prompt: "Help.", model: offline(), tools: workspaceTools, builtInTools: false });
  const { client, sessionId } = await serve({ agents: { helper } });
  const ask = async (input: string): Promise<void> => {
    await allOf(client, await client.runs.start(sessionId, { input }));
    await expect.poll(async () => (await client.sessions.get(sessionId)).running).toBeNull();
  };
  await ask("write train to plan.txt");
  const first = await client.checkpoints.create(sessionId, { files: true, metadata: { note: "a plan" } });
  await ask("write boat to plan.txt");
  await ask("write swim to notes/b.txt");
  const second = await client.checkpoints.create(sessionId, { files: true });

  const { files } = await client.checkpoints.diff(first.id, second.id);
  expect(files).toEqual({
    changes: [
      { path: "notes/b.txt", change: "added", after: "swim" },
      { path: "plan.txt", change: "changed", before: "train", after: "boat" },
    ],
    truncated: false,
  });
  expect((await client.checkpoints.diff(first.id, second.id, { files: false })).files).toBeNull();

  const { leafId, kept } = await client.checkpoints.restore(first.id, { files: true });
  expect([await plan(), leafId, await readdir(workspace)]).toEqual(["train", first.leafId, ["plan.txt"]]);
  expect(kept).toMatchObject({ leafId: second.leafId, metadata: { beforeRestoreOf: first.id } });
  expect((await client.checkpoints.diff(second.id, kept?.id ?? "")).files?.changes).toEqual([]);

  await client.checkpoints.restore(kept?.id ?? "", { files: true });
  expect([await plan(), (await client.sessions.get(sessionId)).leafId]).toEqual(["boat", second.leafId]);
});

test("a checkpoint without files holds none, and a restore leaves the files unchanged", async () => {
  const { client, sessionId } = await serve();
  expect((await client.catalogue()).hasPlace).toBe(true);
  await write("train");
  const bare = await client.checkpoints.create(sessionId, { files: false });
  const held = await client.checkpoints.create(sessionId, { files: true });
  expect([bare.sandboxSnapshot, held.sandboxSnapshot]).toMatchObject([undefined, { backend: "local" }]);
  await write("boat");
  expect((await client.checkpoints.restore(held.id)).kept).toBeNull();
  expect((await client.checkpoints.diff(bare.id, held.id)).files).toBeNull();
  expect([await plan(), (await client.checkpoints.list(sessionId)).length]).toEqual(["boat", 2]);
  await expect(client.checkpoints.restore(bare.id, { files: true })).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringContaining("holds no files"),
  });
});

test("a session's own place has priority over the server's", async () => {
  const { client, manager } = await serve();
  const own = join(directory, "own");
  await mkdir(own);
  await writeFile(join(own, "mine.txt"), "mine");
  const sandbox = { backend: "local", spec: { workingDir: own }, handleId: null };
  const { sessionId } = await manager.create({ userId: "ann", sandbox });
  const { id } = await client.checkpoints.create(sessionId, { files: true });
  await rm(join(own, "mine.txt"));
  await write("untouched");
  await client.checkpoints.restore(id, { files: true });
  expect([await readdir(own), await plan()]).toEqual([["mine.txt"], "untouched"]);
});

test("a session without a place, or with a place without snapshots, is refused, and no checkpoint is made", async () => {
  const { client, sessionId } = await openRunServer();
  expect((await client.catalogue()).hasPlace).toBe(false);
  await expect(client.checkpoints.create(sessionId, { files: true })).rejects.toMatchObject({
    code: "NO_SANDBOX",
    problem: { status: 409 },
  });
  const unable = Object.assign(new CountedBackend({ snapshot: false }), { keepsFiles: () => true });
  const other = await serve({ place: { backend: unable.name } });
  await expect(other.client.checkpoints.create(other.sessionId, { files: true })).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringContaining("has no snapshots"),
  });
  expect([await client.checkpoints.list(sessionId), await other.client.checkpoints.list(other.sessionId)]).toEqual([
    [],
    [],
  ]);
});

test("files are not restored while a run is active, nor by another user", async () => {
  const pause = gate();
  const { client, sessionId, as } = await serve({ agents: { helper: answering([pausing(["One", "two"], pause)]) } });
  await write("train");
  const { id } = await client.checkpoints.create(sessionId, { files: true });
  await write("boat");
  const run = await client.runs.start(sessionId, { input: "Hello" });
  await expect(client.checkpoints.restore(id, { files: true })).rejects.toMatchObject({ code: "SESSION_BUSY" });
  pause.open();
  await allOf(client, run);
  const bob = as("bob");
  await expect(bob.checkpoints.restore(id, { files: true })).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  await expect(bob.checkpoints.create(sessionId, { files: true })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(bob.checkpoints.diff(id, id)).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  expect([await plan(), (await snapshots()).length]).toEqual(["boat", 1]);
});

test("deleting a checkpoint frees its files, and answers match the OpenAPI document", async () => {
  await using server = await startTestServer({ place: { backend: "local", spec: workspace } });
  const api = await readContract(server);
  const base = `/api/sessions/${(await api.call("POST", "/api/sessions", {})).body.header.id}`;
  await write("train");
  const first = (await api.call("POST", `${base}/checkpoints`, { files: true })).body;
  await write("boat");
  const restored = (await api.call("POST", `/api/checkpoints/${first.id}/restore`, { files: true })).body;
  const diff = (await api.call("GET", `/api/checkpoints/${first.id}/diff/${restored.kept.id}`)).body;
  expect(diff.files.changes).toMatchObject([{ before: "train", after: "boat" }]);
  expect(await snapshots()).toHaveLength(2);
  await api.call("DELETE", `/api/checkpoints/${restored.kept.id}`);
  expect(await snapshots()).toHaveLength(1);
  expect([...api.seen]).toEqual(
    expect.arrayContaining(["createCheckpoint", "restoreCheckpoint", "compareCheckpoints"]),
  );
  expect((await api.call("POST", `${base}/checkpoints`, { files: "yes" })).body.code).toBe("INVALID_REQUEST");
});
