import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import type { Sandbox, SandboxSpec } from "../session/sandbox/sandbox.ts";
import { localBackend, PersistentSandboxRegistry, type SandboxRecord } from "./index.ts";

let directory: string;
let registry: PersistentSandboxRegistry;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-registry-")));
  registry = new PersistentSandboxRegistry({ path: join(directory, "sandboxes.json") });
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function open(spec: SandboxSpec = {}): Promise<Sandbox> {
  const sandbox = await localBackend.open(spec);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** A sandbox that another process left: its directory exists, and is not in use by this process. */
async function leave(): Promise<{ id: string; holder: string }> {
  const sandbox = await open();
  const holder = join(sandbox.workingDir, "..");
  const record = await readFile(join(holder, "sandbox.json"), "utf8");
  await sandbox.close();
  await mkdir(holder, { mode: 0o700 });
  await mkdir(join(holder, "workspace"));
  await writeFile(join(holder, "sandbox.json"), record);
  onTestFinished(() => rm(holder, { recursive: true, force: true }));
  return { id: sandbox.id, holder };
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

test("records a sandbox, also an open one, for another registry on the same file", async () => {
  expect(await registry.list()).toEqual([]);
  const sandbox = await open({ env: { A: "a" } });
  await registry.record(sandbox);
  await registry.record({ backend: "other", id: "x", spec: {}, sessionId: "s", metadata: { note: [1] } });
  const [first, second] = await new PersistentSandboxRegistry({ path: registry.path }).list();
  expect(first).toMatchObject({
    backend: "local",
    id: sandbox.id,
    spec: { env: { A: "a" } },
    sessionId: null,
    metadata: {},
  });
  expect(second).toMatchObject({ backend: "other", id: "x", spec: {}, sessionId: "s", metadata: { note: [1] } });
  expect((await stat(registry.path)).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(["sandboxes.json"]);
});

test("keeps its file under Skein's home by default", async () => {
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  onTestFinished(() => void vi.unstubAllEnvs());
  const homely = new PersistentSandboxRegistry();
  await homely.record({ backend: "other", id: "x", spec: {} });
  expect(homely.path).toBe(join(directory, "home/sandboxes.json"));
  expect(await isThere(homely.path)).toBe(true);
});

test("a sandbox that is recorded again keeps its first time, and touching moves only the last one", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  onTestFinished(() => void vi.useRealTimers());
  await registry.record({ backend: "other", id: "x", spec: {} });
  vi.setSystemTime(2_000_000);
  await registry.record({ backend: "other", id: "x", spec: { timeoutMs: 1 } });
  vi.setSystemTime(3_000_000);
  expect(await registry.touch("x")).toBe(true);
  expect(await registry.touch("nobody")).toBe(false);
  expect(await registry.list()).toMatchObject([
    {
      id: "x",
      spec: { timeoutMs: 1 },
      createdAt: new Date(1_000_000).toISOString(),
      touchedAt: new Date(3_000_000).toISOString(),
    },
  ]);
});

test("concurrent changes are all made", async () => {
  const ids = Array.from({ length: 25 }, (_, index) => `id-${String(index).padStart(2, "0")}`);
  await Promise.all(ids.map((id) => registry.record({ backend: "other", id, spec: {} })));
  expect((await registry.list()).map(({ id }) => id).sort()).toEqual(ids);
  const forgotten = await Promise.all(ids.map((id) => registry.forget(id)));
  expect(forgotten.every(Boolean)).toBe(true);
  expect(await registry.list()).toEqual([]);
});

test("reattaches to a recorded sandbox, and fails if it is not recorded, does not exist, or its backend cannot attach", async () => {
  const { id } = await leave();
  await registry.record({ backend: "local", id, spec: { env: { A: "again" } } });
  const again = await registry.reattach(id);
  expect((await again.exec("echo $A")).stdout).toBe("again\n");
  await again.close();
  await expect(registry.reattach(id)).rejects.toMatchObject({ kind: "file_not_found" });
  await expect(registry.reattach("nobody")).rejects.toMatchObject({ kind: "file_not_found" });
  registerSandboxBackend("forgetful", () => ({ open: localBackend.open }));
  await registry.record({ backend: "forgetful", id: "x", spec: {} });
  await expect(registry.reattach("x")).rejects.toMatchObject({ kind: "unsupported" });
  await registry.record({ backend: "unheard-of", id: "y", spec: {} });
  await expect(registry.reattach("y")).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("deletes the temporary directory of a recorded sandbox, and the record", async () => {
  const { id, holder } = await leave();
  expect(await registry.deleteLocal(id)).toBe(false);
  expect(await isThere(holder)).toBe(true);
  await registry.record({ backend: "local", id, spec: {} });
  expect(await registry.deleteLocal(id)).toBe(true);
  expect(await isThere(holder)).toBe(false);
  expect(await registry.list()).toEqual([]);
});

test("never deletes a given directory, one in use here, or the directory in a forged record", async () => {
  const workingDir = join(directory, "work");
  const given = await open({ workingDir });
  await registry.record(given);
  expect(await registry.deleteLocal(given.id)).toBe(false);
  const { id, holder } = await leave();
  await registry.record({ backend: "local", id, spec: { workingDir } });
  expect(await registry.deleteLocal(id)).toBe(false);
  await registry.record({ backend: "opensandbox", id, spec: {} });
  expect(await registry.deleteLocal(id)).toBe(false);
  for (const hostile of ["../work", workingDir, "temporary-../../work"]) {
    await registry.record({ backend: "local", id: hostile, spec: {} });
    expect(await registry.deleteLocal(hostile)).toBe(false);
  }
  const used = await open();
  await registry.record(used);
  await expect(registry.deleteLocal(used.id)).rejects.toMatchObject({ kind: "not_permitted" });
  expect([await isThere(workingDir), await isThere(holder), await isThere(used.workingDir)]).toEqual([
    true,
    true,
    true,
  ]);
});

test("prunes sandboxes that were last used before a time, with temporary directories, and keeps the rest", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  onTestFinished(() => void vi.useRealTimers());
  const old = await leave();
  const touched = await leave();
  const used = await open();
  const workingDir = join(directory, "work");
  const given = await open({ workingDir });
  for (const { id } of [old, touched, used]) await registry.record({ backend: "local", id, spec: {} });
  await registry.record(given);
  vi.setSystemTime(2_000_000);
  await registry.touch(touched.id);
  await registry.record({ backend: "other", id: "new", spec: {} });
  expect(await registry.prune({ olderThan: new Date(2_000_000) })).toEqual([old.id, given.id]);
  expect((await registry.list()).map(({ id }) => id)).toEqual([touched.id, used.id, "new"]);
  const there = await Promise.all([old.holder, touched.holder, used.workingDir, workingDir].map(isThere));
  expect(there).toEqual([false, true, true, true]);
  for (const olderThan of [new Date(Number.NaN), undefined, "yesterday"]) {
    await expect(registry.prune({ olderThan: olderThan as Date })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
});

test("refuses a damaged file in every method, and does not change it", async () => {
  const record = { backend: "local", id: "x", spec: {} };
  const files = [
    "",
    "{",
    "null",
    "[]",
    `{"version":1}`,
    `{"version":1,"sandboxes":[{}]}`,
    `{"version":1,"sandboxes":[{"backend":"local","id":"x","spec":[],"sessionId":null,"metadata":{},"createdAt":"2024","touchedAt":"2024"}]}`,
  ];
  for (const text of files) {
    await writeFile(registry.path, text);
    const calls = [
      () => registry.list(),
      () => registry.record(record),
      () => registry.touch("x"),
      () => registry.reattach("x"),
      () => registry.forget("x"),
      () => registry.deleteLocal("x"),
      () => registry.prune({ olderThan: new Date() }),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: "DAMAGED" });
    expect(await readFile(registry.path, "utf8")).toBe(text);
  }
  await writeFile(registry.path, `{"version":2,"sandboxes":{}}`);
  await expect(registry.record(record)).rejects.toMatchObject({ code: "UNSUPPORTED_VERSION" });
});

test("refuses to record a value that is not JSON, or not a sandbox", async () => {
  const refused = (value: unknown) =>
    expect(registry.record(value as SandboxRecord)).rejects.toMatchObject({ code: "INVALID_VALUE" });
  await refused({ backend: "local", id: "", spec: {} });
  await refused({ backend: 1, id: "x", spec: {} });
  await refused({ backend: "local", id: "x" });
  await refused({ backend: "local", id: "x", spec: {}, metadata: { at: new Date() } });
  expect(await registry.list()).toEqual([]);
});
