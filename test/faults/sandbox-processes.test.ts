import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
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

test("processes that record at the same time lose nothing of each other", async () => {
  const names = ["one", "two", "three"];
  const children = names.map((name) => start("sandbox-record.mjs", name, "20"));
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
  expect(codes).toEqual([0, 0, 0]);
  const ids = (await new PersistentSandboxRegistry({ path }).list()).map(({ id }) => id);
  const wanted = names.flatMap((name) => Array.from({ length: 20 }, (_, index) => `${name}-${index}`));
  expect(ids.sort()).toEqual(wanted.sort());
});
