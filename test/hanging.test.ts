import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { redisMissing } from "../scripts/redis.mjs";
import { run } from "../scripts/run.mjs";
import { skipBecause } from "./skip.ts";

const RUNNER = script("run-vitest.mjs");
const CONFIG = fileURLToPath(new URL("hanging/hanging-config.mjs", import.meta.url));
const SECOND_TRY = fileURLToPath(new URL("hanging/second-try/second-try-config.mjs", import.meta.url));

/** Runs files of the folder `hanging` like `npm test`; resolves to the output and the counts. */
function runHanging(files: readonly string[], env: Record<string, string> = {}) {
  return runWith("runVitest", [`--config=${CONFIG}`, ...files], env);
}

async function runWith(name: "runVitest" | "runVitestTwice", args: readonly string[], env: Record<string, string>) {
  const text = `import { ${name} } from ${JSON.stringify(RUNNER)};
    const counts = await ${name}(${JSON.stringify(args)});
    console.log("counts " + JSON.stringify(counts));`;
  const { SKEIN_TEST_PROGRESS: _outer, ...inherited } = process.env;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", text], {
    env: { ...inherited, SKEIN_TEST_HANG_SECONDS: "5", ...env, NO_COLOR: "1" },
  });
  return { said: stderr, counts: JSON.parse(/^counts (.*)$/m.exec(stdout)?.[1] ?? "null") as unknown };
}

test("a process that spins in promises or in a loop, or never loads its file, is ended and named, and the others run", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-hanging-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const child = join(directory, "child");
  const { said, counts } = await runHanging([], { SKEIN_TEST_CHILD: child });
  // One failure for each of four files; the tests of the others passed.
  expect(counts, said).toMatchObject({ passed: 7, failed: 4, skipped: 0 });
  const lines = said.split("\n").filter((line) => line.includes(".ts") && line.includes("process"));
  expect(lines.sort()).toEqual([
    'test/hanging/crash.ts ("ends its process") was not run to its end, as its process ended.',
    "test/hanging/loading.ts (loading) made no progress for 5 seconds, so its process was ended.",
    'test/hanging/loop.ts ("a group > never returns") made no progress for 5 seconds, so its process was ended.',
    'test/hanging/microtasks.ts ("waits for promises for ever, so that no timer fires") made no progress for 5 seconds, so its process was ended.',
  ]);
  const pid = Number(await readFile(child, "utf8"));
  await expect.poll(() => isThere(pid)).toBe(false);
  if (process.platform === "linux") expect(said).toContain("Processes that tests had left behind were ended: 2.");
});

test("a run whose files all make progress is left alone, however often the time limit passes", async () => {
  const { said, counts } = await runHanging(["slow", "good"], { SKEIN_TEST_HANG_SECONDS: "6" });
  expect(counts, said).toMatchObject({ passed: 6, failed: 0, skipped: 0 });
});

describe("a failed test is run a second time, without other tests beside it, and", () => {
  const runTwice = async (files: readonly string[], env: Record<string, string> = {}) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-second-try-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const marker = join(directory, "ran");
    return runWith("runVitestTwice", [`--config=${SECOND_TRY}`, ...files], { SKEIN_TEST_MARKER: marker, ...env });
  };
  const unstable = 'Unstable: "fails when it is run first" in test/hanging/second-try/unstable.ts failed beside';

  test("is printed as unstable and counts as passed if it passes then", async () => {
    const { said, counts } = await runTwice(["unstable"]);
    expect(counts, said).toEqual({ passed: 2, failed: 0, skipped: 0 });
    expect(said).toContain(unstable);
  });

  test("counts as failed if it fails again", async () => {
    const { said, counts } = await runTwice(["failing"]);
    expect(counts, said).toEqual({ passed: 0, failed: 1, skipped: 0 });
    expect(said).not.toContain("Unstable");
  });

  test("counts as failed without a second run if SKEIN_TEST_SECOND_TRY is off", async () => {
    const { said, counts } = await runTwice(["unstable"], { SKEIN_TEST_SECOND_TRY: "off" });
    expect(counts, said).toEqual({ passed: 1, failed: 1, skipped: 0 });
    expect(said).not.toContain("Unstable");
  });
});

test.for(["0", "soon", "-1"])("a time limit of %j is refused, and leaves no files", async (limit) => {
  const directory = await mkdtemp(join(tmpdir(), "skein-hanging-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o755);
  const running = runHanging(["good"], { SKEIN_TEST_HANG_SECONDS: limit, TMPDIR: directory });
  await expect(running).rejects.toThrow(/SKEIN_TEST_HANG_SECONDS/);
  expect(await readdir(directory)).toEqual([]);
});

test("a hanging step of the set-up is ended with its child processes, and named", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-hanging-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "child");
  const running = run("sh", ["-c", 'sleep 600 & echo $! > "$0"; wait', file], { minutesMax: 0.02 });
  await expect(running).rejects.toThrow("sh took more than 0.02 minutes, so it was ended.");
  const pid = Number(await readFile(file, "utf8"));
  await expect.poll(() => isThere(pid)).toBe(false);
});

test("an interrupt of all processes ends Vitest, PostgreSQL and Redis, leaves nothing behind and starts nothing more", async (context) => {
  if (process.platform === "win32") skipBecause(context, "Windows has no signals for groups of processes");
  const directory = await mkdtemp(join(tmpdir(), "skein-hanging-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const text = `import { main } from ${JSON.stringify(script("run.mjs"))};
    import { withPostgres } from ${JSON.stringify(script("postgres.mjs"))};
    import { withRedis } from ${JSON.stringify(script("redis.mjs"))};
    import { runVitest } from ${JSON.stringify(RUNNER)};
    const args = ${JSON.stringify(["--config", CONFIG, "slow"])};
    const both = async () => {
      console.log("servers", process.env.SKEIN_TEST_POSTGRES_URL, process.env.SKEIN_TEST_REDIS_URL);
      await runVitest(args);
      console.log("next");
      await runVitest(args);
      return 0;
    };
    await main(() => withPostgres(() => withRedis(both)));`;
  const {
    SKEIN_TEST_PROGRESS: _outer,
    SKEIN_TEST_POSTGRES_URL: _pg,
    SKEIN_TEST_REDIS_URL: _redis,
    ...env
  } = process.env;
  const child = spawn(process.execPath, ["--input-type=module", "-e", text], {
    env: { ...env, TMPDIR: directory, NO_COLOR: "1", SKEIN_TEST_RUNNING: join(directory, "running") },
    stdio: ["ignore", "pipe", "pipe"],
    // A separate process group, which is interrupted as a whole, as by Ctrl-C.
    detached: true,
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (said += data));
  await expect.poll(() => existsSync(join(directory, "running")), { interval: 50 }).toBe(true);
  const worker = Number(await readFile(join(directory, "running"), "utf8"));
  process.kill(-(child.pid as number), "SIGINT");
  await once(child, "close");
  expect(child.exitCode, said).toBe(1);
  expect(said).toContain("Stopped by SIGINT.");
  expect(said).not.toContain("next");
  await expect.poll(() => isThere(worker)).toBe(false);
  const ports = [...said.matchAll(/@127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
  expect(ports.length).toBe(redisMissing() === null ? 2 : 1);
  for (const port of ports) await expect(connectTo(port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect((await readdir(directory)).sort()).toEqual(["running"]);
});

function script(name: string): string {
  return new URL(`../scripts/${name}`, import.meta.url).href;
}

async function connectTo(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
  } finally {
    socket.destroy();
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
