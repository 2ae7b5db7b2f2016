import { readdirSync } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import type { Sandbox, SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { localBackend } from "./local-backend.ts";

let directory: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-local-")));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function open(spec: SandboxSpec = {}): Promise<Sandbox> {
  const sandbox = await localBackend.open(spec);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

const attach = (id: string, spec: SandboxSpec = {}): Promise<Sandbox> =>
  (localBackend.attach as NonNullable<typeof localBackend.attach>)(id, spec);

const text = async (sandbox: Sandbox, path: string): Promise<string> =>
  new TextDecoder().decode(await sandbox.readFile(path));

test("a temporary directory is private to its owner, and removed on close with its content", async () => {
  const sandbox = await open();
  await sandbox.exec("mkdir -p a/b; touch a/b/c; chmod 000 a/b/c; chmod 555 a/b; ln -s / root");
  const holder = join(sandbox.workingDir, "..");
  expect((await stat(holder)).mode & 0o777).toBe(0o700);
  await sandbox.close();
  await expect(stat(holder)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a given directory is created if it is missing, and kept with its files", async () => {
  const workingDir = join(directory, "work");
  const sandbox = await open({ workingDir });
  await sandbox.writeFile("a.txt", "a");
  await sandbox.close();
  expect(await readFile(join(workingDir, "a.txt"), "utf8")).toBe("a");
  const again = await open({ workingDir });
  expect(again.id).toBe(sandbox.id);
  expect(await text(again, "a.txt")).toBe("a");
});

test("refuses a directory whose parent is missing, or that is a file, and makes nothing", async () => {
  await writeFile(join(directory, "file"), "");
  await expect(open({ workingDir: join(directory, "no/work") })).rejects.toMatchObject({ kind: "file_not_found" });
  await expect(open({ workingDir: join(directory, "file") })).rejects.toMatchObject({ kind: "os_error" });
  expect(await readdir(directory)).toEqual(["file"]);
});

test("a relative working directory is recorded as the absolute one", async () => {
  vi.spyOn(process, "cwd").mockReturnValue(directory);
  onTestFinished(() => void vi.restoreAllMocks());
  const sandbox = await open({ workingDir: "work" });
  expect(sandbox.spec.workingDir).toBe(join(directory, "work"));
  expect(Object.isFrozen(sandbox.spec)).toBe(true);
});

test("attaches to a given directory with its spec, and to no other by its id", async () => {
  const spec = { workingDir: join(directory, "one") };
  const sandbox = await open(spec);
  await sandbox.close();
  expect((await attach(sandbox.id, spec)).workingDir).toBe(spec.workingDir);
  const other = { workingDir: join(directory, "two") };
  await mkdir(other.workingDir);
  await expect(attach(sandbox.id, other)).rejects.toMatchObject({ kind: "file_not_found" });
  await expect(attach(sandbox.id)).rejects.toMatchObject({ kind: "file_not_found" });
  await rm(spec.workingDir, { recursive: true });
  await expect(attach(sandbox.id, spec)).rejects.toMatchObject({ kind: "file_not_found" });
});

test("a directory that two sandboxes share stays until both are closed", async () => {
  const first = await open();
  const second = await attach(first.id);
  await first.writeFile("a.txt", "a");
  await first.close();
  expect(await text(second, "a.txt")).toBe("a");
  await second.close();
  await expect(stat(second.workingDir)).rejects.toMatchObject({ code: "ENOENT" });
});

test("does not attach to a directory that it did not create", async () => {
  const sandbox = await open();
  const holder = join(sandbox.workingDir, "..");
  const gone = { kind: "file_not_found" };
  await chmod(holder, 0o777);
  await expect(attach(sandbox.id)).rejects.toMatchObject(gone);
  await chmod(holder, 0o700);
  await rename(holder, join(directory, "moved"));
  await symlink(join(directory, "moved"), holder);
  await expect(attach(sandbox.id)).rejects.toMatchObject(gone);
  await rm(holder);
  await rename(join(directory, "moved"), holder);
  await (await attach(sandbox.id)).exists("a");
  for (const record of ["{}", "null", "not json", `{"id":"temporary-other"}`]) {
    await writeFile(join(holder, "sandbox.json"), record);
    await expect(attach(sandbox.id)).rejects.toMatchObject(gone);
  }
  await rm(join(holder, "sandbox.json"));
  await expect(attach(sandbox.id)).rejects.toMatchObject(gone);
  await rm(holder, { recursive: true });
});

test("does not attach to a directory of another user", async (context) => {
  if (process.getuid?.() !== 0) skipBecause(context, "only root can give a directory to another user");
  const sandbox = await open({ isolation: "off" });
  await sandbox.exec("chown 65534 ..");
  await expect(attach(sandbox.id)).rejects.toMatchObject({ kind: "file_not_found" });
  await sandbox.exec("chown 0 ..");
});

test("can access the paths in allowPaths, by absolute path and through a link, and no others", async () => {
  await mkdir(join(directory, "shared"));
  await writeFile(join(directory, "beside.txt"), "secret");
  const shared = join(directory, "shared");
  const sandbox = await open({ allowPaths: [shared, join(directory, "later")] });
  await sandbox.writeFile(join(shared, "a/b.txt"), "b");
  await sandbox.writeFile(join(directory, "later/c.txt"), "c");
  await symlink(shared, join(sandbox.workingDir, "link"));
  expect(await text(sandbox, "link/a/b.txt")).toBe("b");
  expect((await sandbox.list(shared, { recursive: true })).map(({ path }) => path)).toEqual([
    join(shared, "a"),
    join(shared, "a/b.txt"),
  ]);
  expect((await sandbox.exec("pwd", { cwd: shared })).stdout.trim()).toBe(shared);
  for (const path of [join(directory, "beside.txt"), `${shared}-other`, join(shared, "../beside.txt")]) {
    await expect(sandbox.readFile(path)).rejects.toMatchObject({ kind: "not_permitted" });
  }
  await expect(sandbox.remove(shared)).rejects.toMatchObject({ kind: "not_permitted" });
  expect(await sandbox.remove(join(shared, "a"))).toBe(true);
});

test("refuses unsupported fields of a spec by name", async () => {
  const invalid = (spec: unknown) =>
    expect(open(spec as SandboxSpec)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  const unsupported = (spec: unknown) =>
    expect(open(spec as SandboxSpec)).rejects.toMatchObject({ kind: "unsupported" });
  await invalid(null);
  await invalid({ workingDirectory: "x" });
  await invalid({ workingDir: "" });
  await invalid({ workingDir: "a\0b" });
  await invalid({ allowPaths: ["relative"] });
  await invalid({ allowPaths: "/" });
  await invalid({ env: { A: 1 } });
  await invalid({ env: { A: "a\0" } });
  await invalid({ timeoutMs: -1 });
  await invalid({ timeoutMs: Number.NaN });
  await invalid({ network: "yes" });
  await invalid({ limits: 1 });
  await invalid({ limits: { cores: 1 } });
  await invalid({ limits: { processes: 0.5 } });
  await invalid({ limits: { seconds: 0 } });
  await invalid({ limits: { memoryBytes: Number.POSITIVE_INFINITY } });
  await unsupported({ image: "debian" });
  await unsupported({ entrypoint: ["sh"] });
  await unsupported({ isolation: "hope" });
  await unsupported({ isolation: "off", network: false });
});

test("changing a spec after opening has no effect", async () => {
  const env = { A: "before" };
  const allowPaths: string[] = [];
  const sandbox = await open({ env, allowPaths });
  env.A = "after";
  allowPaths.push(directory);
  expect((await sandbox.exec("echo $A")).stdout).toBe("before\n");
  await expect(sandbox.list(directory)).rejects.toMatchObject({ kind: "not_permitted" });
});

test("lists the languages whose programs are installed", async () => {
  await mkdir(join(directory, "bin"));
  await writeFile(join(directory, "bin/python3"), "#!/bin/sh\necho not really python", { mode: 0o755 });
  await writeFile(join(directory, "bin/node"), "", { mode: 0o644 });
  const sandbox = await open({ env: { PATH: join(directory, "bin") } });
  expect(sandbox.capabilities.languages).toEqual(["python", "sh"]);
  await expect(sandbox.runCode("javascript", "")).rejects.toMatchObject({ kind: "unsupported" });
});

test("code finds the modules in its directory", async () => {
  const sandbox = await open();
  await sandbox.writeFile("sub/part.cjs", "module.exports = 'a part in javascript';");
  await sandbox.writeFile("sub/part.py", "text = 'a part in python'");
  const programs = {
    javascript: "console.log(require('./part.cjs'))",
    python: "import sys; sys.dont_write_bytecode = True\nfrom part import text; print(text)",
  };
  for (const language of ["javascript", "python"] as const) {
    if (!sandbox.capabilities.languages.includes(language)) continue;
    const { stdout, stderr } = await sandbox.runCode(language, programs[language], { cwd: "sub" });
    expect(stdout, stderr).toBe(`a part in ${language}\n`);
  }
  await expect(sandbox.runCode("sh", "true", { cwd: "nowhere" })).rejects.toMatchObject({ kind: "file_not_found" });
  expect(await sandbox.exists("nowhere")).toBe(false);
});

test("works, or reports a missing root, after a command removed it", async () => {
  // An isolated command can empty the root, but cannot remove it.
  const sandbox = await open({ isolation: "off" });
  await sandbox.exec(`rm -rf "$PWD"`);
  await expect(sandbox.exec("true")).rejects.toMatchObject({ kind: "file_not_found" });
  expect(await sandbox.exists("a")).toBe(false);
  await sandbox.writeFile("a/b.txt", "b");
  expect((await sandbox.exec("cat a/b.txt")).stdout).toBe("b");
});

test("a file that is being written when it closes is written, and then removed with the rest", async () => {
  const sandbox = await open();
  const writing = sandbox.writeFile("a/large.bin", new Uint8Array(48 * 1024 * 1024));
  await sandbox.close();
  await expect(writing).resolves.toBeUndefined();
  await expect(stat(sandbox.workingDir)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a command that is about to start when the sandbox closes does not start", async () => {
  const sandbox = await open({ workingDir: join(directory, "work") });
  const starting = sandbox.exec("touch started");
  await sandbox.close();
  await expect(starting).rejects.toMatchObject({ kind: "sandbox_closed" });
  expect(await readdir(join(directory, "work"))).toEqual([]);
});

test("endlessly nested directories use few file descriptors: removing works, listing and copying is refused", async (context) => {
  if (process.platform !== "linux") skipBecause(context, "only Linux counts open descriptors");
  const sandbox = await localBackend.open({});
  onTestFinished(() => sandbox.close());
  const nest = `const { mkdirSync } = require("node:fs");
    for (let depth = 0; depth < 1000; depth++) { mkdirSync("d"); process.chdir("d"); }`;
  expect((await sandbox.exec([process.execPath, "-e", nest])).exitCode).toBe(0);
  let most = 0;
  const count = (): number => readdirSync("/proc/self/fd").length;
  const before = count();
  const timer = setInterval(() => {
    most = Math.max(most, count());
  }, 1);
  onTestFinished(() => clearInterval(timer));
  await expect(sandbox.list(".", { recursive: true })).rejects.toMatchObject({ kind: "os_error" });
  await expect(sandbox.snapshot()).rejects.toMatchObject({ kind: "os_error" });
  expect(await sandbox.remove("d")).toBe(true);
  expect(await sandbox.list()).toEqual([]);
  expect(most - before).toBeLessThan(600);
});
