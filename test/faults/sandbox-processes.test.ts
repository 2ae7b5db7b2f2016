import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { PersistentSandboxRegistry } from "../../src/sandboxes/persistent-sandbox-registry.ts";

let path: string;

beforeEach(async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "skein-sandbox-faults-")));
  path = join(directory, "sandboxes.json");
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

function start(program: string, ...rest: string[]): ReturnType<typeof spawn> {
  const file = fileURLToPath(new URL(`programs/${program}`, import.meta.url));
  const child = spawn(process.execPath, [file, path, ...rest], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

test("a sandbox whose process was killed is found again by the next, with its files, and removed when that closes it", async () => {
  const child = start("sandbox-hold.mjs");
  const [said] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [Buffer];
  child.kill("SIGKILL");
  await once(child, "exit");
  const id = said.toString().trim();

  const sandbox = await new PersistentSandboxRegistry({ path }).reattach(id);
  expect((await sandbox.exec("cat file.txt; echo; echo $FROM")).stdout).toBe("kept\nanother process\n");
  await sandbox.close();
  await expect(stat(sandbox.workingDir)).rejects.toMatchObject({ code: "ENOENT" });
  await expect(new PersistentSandboxRegistry({ path }).reattach(id)).rejects.toMatchObject({ kind: "file_not_found" });
});

test("a user without rights restores, keeps and removes directories that may not be written to or read", async () => {
  const home = join(path, "../home");
  await mkdir(home);
  await chmod(join(path, ".."), 0o755);
  await chmod(home, 0o777);
  const file = fileURLToPath(new URL("programs/sandbox-as-nobody.mjs", import.meta.url));
  const env = { ...process.env, SKEIN_HOME: home, TMPDIR: home };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
  const files = ["closed", "closed/below", "closed/below/file", "plain"];
  expect(JSON.parse(stdout)).toEqual({
    restored: { paths: files, mode: "555\ny\n" },
    failure: "os_error",
    afterFailure: ["closed", "closed/below", "closed/below/file", "extra", "plain"],
    left: false,
    deleted: true,
  });
});

test("processes that record at the same time lose nothing of each other", async () => {
  const names = ["one", "two", "three"];
  const children = names.map((name) => start("sandbox-record.mjs", name, "20"));
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
  expect(codes).toEqual([0, 0, 0]);
  const ids = (await new PersistentSandboxRegistry({ path }).list()).map(({ id }) => id);
  const wanted = names.flatMap((name) => Array.from({ length: 20 }, (_, index) => `${name}-${index}`));
  expect(ids.sort()).toEqual(wanted.sort());
});
