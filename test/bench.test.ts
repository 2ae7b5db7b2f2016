import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bench = join(root, "scripts/bench.mjs");

test("the benchmark measures every section in one run, small as it may be, and prints one table", async () => {
  const { stdout, stderr } = await run(process.execPath, [bench, "--quick", "--no-peers"], { cwd: root });
  const rows = stdout.split("\n").filter((line) => line.startsWith("| "));
  const sections = new Set(rows.slice(2).map((line) => line.split(" ")[1]));
  expect([...sections]).toEqual([
    "append",
    "growth",
    "open",
    "fork",
    "list",
    "memory",
    "tree",
    "runs",
    "lifecycle",
    "sandboxes",
    "http",
    "checks",
    "studio",
    "postgres",
    "redis",
    "fleet",
    "scale",
    "cold",
    "peers",
  ]);
  expect(stderr).toContain("a quick run says nothing about speed");
});

test("the benchmark answers an option that it does not know with a sentence", async () => {
  const failed = await run(process.execPath, [bench, "--fast"], { cwd: root }).catch(
    (error: { code: number; stderr: string }) => error,
  );
  expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining("--fast") });
});

test("the benchmark answers a revision that is not there with a sentence", async () => {
  const failed = await run(process.execPath, [bench, "--quick", "--only", "checks", "--against", "no-such-revision"], {
    cwd: root,
  }).catch((error: { code: number; stderr: string }) => error);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no revision no-such-revision") });
});
