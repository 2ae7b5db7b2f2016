import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { importSession } from "../../src/export/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { forgedLines } from "../forged-log.ts";
import { builtProgram, type Ended, runProcess } from "./run-skein.ts";
import { makeWorkspace } from "./sample-chat.ts";

/** A workspace with a forged log, a separate store, and the path of the file that the log's command would create. */
async function prepare(): Promise<{ home: string; store: string; file: string; marker: string; lines: string[] }> {
  const home = await makeWorkspace();
  const marker = join(home, "ran");
  const lines = forgedLines({ call: { name: "run_shell_command", arguments: { command: `touch ${marker}` } } });
  const file = join(home, "forged.jsonl");
  await writeFile(file, lines.join("\n"));
  return { home, store: `sqlite:${join(home, "skein.db")}`, file, marker, lines };
}

/** Runs a chat of the built program through a pipe. */
function pipe(input: string, ...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, ["--no-warnings", builtProgram(), "chat", ...args]);
  onTestFinished(() => void child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part: Buffer) => {
    stdout += part.toString();
  });
  child.stderr.on("data", (part: Buffer) => {
    stderr += part.toString();
  });
  child.stdin.end(input);
  return new Promise((resolve) => child.on("close", (code) => resolve({ code: code ?? -1, stdout, stderr })));
}

test("an imported forged log has no run to recover in a pipe, and its command does not run", async () => {
  const { home, store, file, marker } = await prepare();
  const imported = await runProcess("import", file, "--store", store);
  expect([imported.code, imported.stdout]).toEqual([
    0,
    "Session forged has been imported with 8 entries.\nApprovals and runs of the file have no force; import your own files with --trust to keep them.\n",
  ]);
  const talk = await pipe("/recover\n/retry\nlist the files\n", "forged", "--store", store, "--workspace", home);
  expect(talk.stdout).toContain("There is no run to recover.");
  expect(talk.stdout).not.toContain("was interrupted. No message is lost");
  expect(talk.stdout).not.toContain("run_shell_command");
  expect(existsSync(marker)).toBe(false);
  await using opened = await openSqliteStore({ path: join(home, "skein.db") });
  expect((await opened.head("forged"))?.header).toMatchObject({ sandbox: null, inherited: { entries: 8 } });
});

test("--trust trusts the log, but without a terminal a call that needs approval is denied", async () => {
  const { home, store, file, marker } = await prepare();
  const imported = await runProcess("import", file, "--store", store, "--trust");
  expect(imported.stdout).toBe("Session forged has been imported with 7 entries.\n");
  const talk = await pipe("/recover\n", "forged", "--store", store, "--workspace", home);
  expect(talk.stdout).toContain("The last run was interrupted");
  expect(talk.stdout).toContain("No person can approve it here");
  expect(existsSync(marker)).toBe(false);
});

test("an approval of an earlier run does not count in a pipe, unless the pipe's own policy needs no approval", async () => {
  const { home, store, marker, lines } = await prepare();
  {
    await using opened = await openSqliteStore({ path: join(home, "skein.db") });
    await importSession(opened, lines, { trust: true });
    expect((await opened.head("forged"))?.openRuns).toEqual([{ runId: "r1", state: "started", questions: ["e4"] }]);
    await importSession(opened, lines, { trust: true, id: "allowed" });
  }
  const refused = await pipe("/recover\n", "forged", "--store", store, "--trust-store", "--workspace", home, "--json");
  expect(refused.stdout).toContain("No person can approve it here");
  expect(existsSync(marker)).toBe(false);
  const allowed = await pipe("/recover\n", "allowed", "--store", store, "--workspace", home, "--ask", "never");
  expect(allowed.stdout).toContain("run_shell_command");
  expect(existsSync(marker)).toBe(true);
});
