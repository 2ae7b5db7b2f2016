import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SessionTree } from "../../src/index.ts";

const program = fileURLToPath(new URL("programs/tree-hold.mjs", import.meta.url));
let directory: string;
let child: ChildProcess | null = null;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-in-use-"));
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await rm(directory, { recursive: true, force: true });
});

test("a file that another process writes to is shared, read-only or refused by choice, and free once that process is killed", async () => {
  const made = await SessionTree.create("/project", { directory, persistFrom: "create" });
  await made.close();
  const path = made.path as string;
  child = spawn(process.execPath, [program, path], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout as NonNullable<typeof child.stdout>, "data");

  await expect(SessionTree.open(path, { ifInUse: "refuse" })).rejects.toMatchObject({
    code: "SESSION_BUSY",
    holder: expect.stringContaining(String(child.pid)),
  });
  await using reader = await SessionTree.open(path, { ifInUse: "read-only" });
  expect(await reader.getName()).toBe("held by another process");
  await expect(reader.setName("mine")).rejects.toMatchObject({ code: "READ_ONLY" });
  await using sharing = await SessionTree.open(path);
  await sharing.setName("shared");
  await sharing.close();

  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  await using next = await SessionTree.open(path, { ifInUse: "refuse" });
  expect(await next.getName()).toBe("shared");
});
