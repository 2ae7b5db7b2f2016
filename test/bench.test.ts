import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readTable, renderTable } from "../bench/render-report.ts";

const run = promisify(execFile);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bench = join(root, "scripts/bench.mjs");

/** The sections to run here: all of them take a minute. `npm run bench -- --quick` runs all. */
const SHORT = ["append", "checks", "redis"];

/** It starts a process for each section, which takes minutes on a busy machine. */
const TIMEOUT_MS = 480_000;

test("the benchmark measures the requested sections, in small sizes too, and prints one table", {
  timeout: TIMEOUT_MS,
}, async () => {
  const all = await run(process.execPath, [bench, "--only", "?"], { cwd: root }).catch(
    (error: { stderr: string }) => error,
  );
  const names = /there are ([^.]+)\./.exec(all.stderr)?.[1]?.split(", ") ?? [];
  const chosen = names.filter((name) => SHORT.includes(name));
  expect(chosen).toHaveLength(SHORT.length);
  const { stdout, stderr } = await run(process.execPath, [bench, "--quick", "--only", chosen.join(",")], { cwd: root });
  const rows = stdout.split("\n").filter((line) => line.startsWith("| "));
  expect([...new Set(rows.slice(2).map((line) => line.split(" ")[1]))]).toEqual(chosen);
  expect(stderr).toContain("a quick run says nothing about speed");
});

test("the rows of the benchmark page are read back as they were written, so that one section can be measured again", async () => {
  const page = await readFile(join(root, "docs/benchmarks.md"), "utf8");
  const rows = readTable(page);
  expect(rows.length).toBeGreaterThan(100);
  expect(page).toContain(renderTable(rows));
});

test("the benchmark refuses an unknown option with one sentence", async () => {
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
