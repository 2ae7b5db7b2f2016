import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, createClient } from "../../src/http/client/index.ts";
import type { JsonObject } from "../../src/internal/json.ts";
import { textOf } from "../../src/session/message.ts";
import { HealthProber } from "../hostile/health-prober.ts";

const MIB = 1024 * 1024;
const PROGRAM = join(import.meta.dirname, "programs/serve-tools.mjs");
/** So many that the names of all concurrent listings do not fit into the heap. */
const FILES = 100_000;
const EACH = 16;
/** A heap that has room for only a few of the files. */
const RSS_MAX = 1000 * MIB;

let directory: string;
let child: ChildProcess;
let url: string;
let client: Client;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-tools-"));
  const many = join(directory, "many");
  await mkdir(many);
  execFileSync("sh", ["-c", `cd "$1" && seq -f 'file-number-%.0f' ${FILES} | xargs -n 2000 touch`, "sh", many]);
  await writeFile(join(directory, "lines0"), "\n".repeat(31 * MIB));
  await writeFile(join(directory, "letters0"), "a".repeat(4 * MIB));
  for (let i = 0; i < EACH; i++) {
    await symlink("many", join(directory, `list${i}`));
    // With different names, because calls for one path wait for each other.
    if (i > 0) await link(join(directory, "lines0"), join(directory, `lines${i}`));
    if (i > 0) await link(join(directory, "letters0"), join(directory, `letters${i}`));
  }
  child = spawn(process.execPath, ["--max-old-space-size=256", PROGRAM, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  url = String(line).trim();
  client = createClient({ url });
});
afterAll(async () => {
  if (child.exitCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await rm(directory, { recursive: true, force: true });
});

/** Runs calls in one round while the health route is polled; the results, and the longest latency. */
async function call(calls: readonly JsonObject[]): Promise<{ results: string[]; longestMs: number }> {
  const { header } = await client.sessions.create({});
  const prober = new HealthProber(url, child.pid as number);
  try {
    const run = await client.runs.start(header.id, { input: JSON.stringify(calls) });
    for await (const _ of client.runs.events(header.id, run.runId));
    const { longestMs, failures } = await prober.take();
    expect(failures).toEqual([]);
    const results: string[] = [];
    for await (const entry of client.sessions.entriesAll(header.id)) {
      if (entry.type === "message" && entry.message.role === "tool") results.push(textOf(entry.message.content));
    }
    return { results, longestMs };
  } finally {
    prober.stop();
  }
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

test("fifty concurrent calls on large files and directories are answered, while the server answers others within a second", async () => {
  const half = "a".repeat(100_000);
  const { results, longestMs } = await call([
    ...times(EACH, (i) => ({ name: "list_workspace_files", arguments: { path: `list${i}`, recursive: i % 2 === 0 } })),
    ...times(EACH, (i) => ({ name: "read_workspace_file", arguments: { path: `lines${i}`, start_line: 30_000_000 } })),
    ...times(EACH, (i) => ({
      name: "edit_workspace_file",
      arguments: { path: `letters${i}`, old_text: half, new_text: "b" },
    })),
    { name: "list_workspace_files", arguments: { recursive: true } },
  ]);
  expect(results).toHaveLength(3 * EACH + 1);
  for (const listed of results.slice(0, EACH)) {
    expect(JSON.parse(listed)).toMatchObject({ truncated: true, entries: { length: 500 } });
    expect(listed).toContain("file-number-1000");
  }
  for (const read of results.slice(EACH, 2 * EACH)) expect(read).toContain("Lines 30000000 to 30001999 of 32505856.");
  for (const edited of results.slice(2 * EACH, 3 * EACH)) expect(edited).toContain("old_text occurs 4094305 times");
  expect(child.exitCode).toBeNull();
  if (process.platform === "linux") {
    const [, kilobytes = "0"] = /^VmHWM:\s+(\d+)/m.exec(await readFile(`/proc/${child.pid}/status`, "utf8")) ?? [];
    expect(Number(kilobytes) * 1024).toBeLessThan(RSS_MAX);
  }
  expect(longestMs).toBeLessThan(1000);
});
