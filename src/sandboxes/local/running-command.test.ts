import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import type { ExecResult, Sandbox, SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { localBackend } from "./local-backend.ts";

/** Without isolation: a process namespace would kill all processes by itself and has other process ids. */
async function open(spec: SandboxSpec = {}): Promise<Sandbox> {
  const sandbox = await localBackend.open({ isolation: "off", ...spec });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** Whether a process runs; a zombie does not. */
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync("/proc") || !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** The process ids that commands wrote into a file; waits for the wanted number of them. */
async function pidsIn(sandbox: Sandbox, count: number): Promise<number[]> {
  return vi.waitFor(
    async () => {
      const text = await readFile(join(sandbox.workingDir, "pids"), "utf8");
      const lines = text.split("\n");
      expect(lines).toHaveLength(count + 1);
      return lines.slice(0, -1).map(Number);
    },
    { timeout: 60_000, interval: 10 },
  );
}

/** Starts a command, waits for the process ids in the file "pids", aborts the command, and returns the ids. */
async function abortWith(
  sandbox: Sandbox,
  command: string,
  count: number,
  before: () => Promise<void> = async () => {},
): Promise<number[]> {
  const controller = new AbortController();
  const running = sandbox.exec(command, { signal: controller.signal });
  running.catch(() => {});
  const pids = await pidsIn(sandbox, count);
  expect(pids.filter(lives)).toEqual(pids);
  await before();
  controller.abort(new Error("stop"));
  await expect(running).rejects.toThrow("stop");
  return pids;
}

test("aborting a command kills all of its processes: children, other sessions, orphans, those without environment", async () => {
  const sandbox = await open();
  const note = `echo $$ >> pids; trap "" TERM; while :; do sleep 1; done`;
  await sandbox.writeFile("note.sh", note);
  const pids = await abortWith(
    sandbox,
    `sh note.sh &
     setsid sh note.sh &
     (setsid sh note.sh >/dev/null 2>&1 </dev/null &)
     setsid -f sh note.sh
     env -i PATH="$PATH" setsid sh note.sh &
     (env -i PATH="$PATH" sh note.sh &)
     sleep 600`,
    6,
  );
  expect(pids.filter(lives)).toEqual([]);
});

test("processes that start each other faster than they can be listed end with their command", async () => {
  const sandbox = await open();
  const next = "setsid sh chain.sh $1 >/dev/null 2>&1 </dev/null &";
  await sandbox.writeFile("chain.sh", `echo $$ > last.$1\n${next}\n`);
  await abortWith(sandbox, "for i in 1 2 3 4 5 6; do sh chain.sh $i; done; echo $$ >> pids; sleep 600", 1);
  for (const { path } of await sandbox.list()) if (path.startsWith("last.")) await sandbox.remove(path);
  // A step of a chain takes a few milliseconds, so a surviving one has written by the end of this command.
  await sandbox.exec(["sleep", "0.3"]);
  const written = (await sandbox.list()).filter(({ path }) => path.startsWith("last."));
  // Without its program, no chain continues, whatever the outcome.
  await sandbox.remove("chain.sh");
  expect(written).toEqual([]);
});

test("processes that a finished command left running are killed before its call resolves", async (context) => {
  const sandbox = await open();
  if (!sandbox.capabilities.languages.includes("bash")) skipBecause(context, "there is no bash on this machine");
  const quiet = ">/dev/null 2>&1 </dev/null & echo $! >> pids";
  // One at a time, because they are found in different ways: by variable, group or session.
  const commands = [
    `sleep 600 & echo $! >> pids`,
    `(setsid sleep 600 ${quiet})`,
    `env -i sleep 600 ${quiet}`,
    `bash -c 'set -m; env -i sleep 600 ${quiet}'`,
  ];
  for (const [index, command] of commands.entries()) {
    expect((await sandbox.exec(command)).exitCode).toBe(0);
    const pids = await pidsIn(sandbox, index + 1);
    expect(pids.filter(lives), command).toEqual([]);
  }
});

test("killing a command does not kill other processes of this sandbox or this machine", async () => {
  const sandbox = await open();
  const stranger = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void stranger.kill("SIGKILL"));
  const others: Promise<ExecResult>[] = [];
  const startOther = async (name: string): Promise<void> => {
    others.push(sandbox.exec(`touch ${name}; while [ ! -e go ]; do sleep 0.02; done; echo survived`));
    await vi.waitFor(async () => expect(await sandbox.exists(name)).toBe(true), { timeout: 60_000, interval: 10 });
  };
  await startOther("earlier");
  const [pid] = await abortWith(sandbox, "echo $$ >> pids; sleep 600", 1, () => startOther("later"));
  expect(lives(pid as number)).toBe(false);
  expect(lives(stranger.pid as number)).toBe(true);
  await sandbox.writeFile("go", "");
  expect((await Promise.all(others)).map(({ stdout }) => stdout)).toEqual(["survived\n", "survived\n"]);
});

test("output that is written just after the command ended is still included", async (context) => {
  const sandbox = await open();
  if (!sandbox.capabilities.languages.includes("bash")) skipBecause(context, "there is no bash on this machine");
  const { stdout } = await sandbox.runCode("bash", "echo early > >(sleep 0.05; cat)");
  expect(stdout).toBe("early\n");
});

test("memory use does not grow with a command's output", async () => {
  const sandbox = await open();
  await sandbox.exec("yes | head -c 20000000");
  const before = process.memoryUsage.rss();
  const { truncated, stdout } = await sandbox.exec("yes | head -c 400000000; echo end");
  expect(truncated).toBe(true);
  expect(stdout.endsWith("y\nend\n")).toBe(true);
  expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000);
});

test("a command sees only those variables of the host that a shell needs", async () => {
  for (const name of ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "LC_TIME", "NODE_OPTIONS"]) {
    vi.stubEnv(name, name === "LC_TIME" ? "C" : "hidden");
  }
  vi.stubEnv("HOME", "/somewhere");
  onTestFinished(() => void vi.unstubAllEnvs());
  const sandbox = await open();
  const { stdout } = await sandbox.exec(["env"]);
  expect(stdout).not.toContain("hidden");
  expect(stdout).toContain("LC_TIME=C\n");
  expect(stdout).toContain("HOME=/somewhere\n");
  const allowed = /^(?:PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TERM|TMPDIR|TZ|PWD|LC_\w+|SKEIN_COMMAND_ID)=/;
  expect(
    stdout
      .trim()
      .split("\n")
      .filter((line) => !allowed.test(line)),
  ).toEqual([]);
});

test("a command has a default PATH if the host has none", async () => {
  vi.stubEnv("PATH", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await (await open()).exec("echo $PATH; ls")).stdout).toBe("/usr/local/bin:/usr/bin:/bin\n");
});

test("refuses invalid variables, programs and inputs", async () => {
  const sandbox = await open();
  const refused = (call: Promise<unknown>, kind: string) => expect(call).rejects.toMatchObject({ kind });
  await refused(sandbox.exec(["true"], { env: { A: "a\0b" } }), "os_error");
  await refused(sandbox.exec(["true"], { env: { "A=B": "" } }), "os_error");
  await refused(sandbox.exec(["true"], { env: { A: 1 as unknown as string } }), "os_error");
  await refused(sandbox.exec(["true", "a\0b"]), "os_error");
  await refused(sandbox.exec("  "), "os_error");
  await refused(sandbox.exec(["true"], { stdin: 1 as unknown as string }), "unsupported");
  await refused(sandbox.exec(["./"]), "os_error");
  await mkdir(join(sandbox.workingDir, "folder"));
  await refused(sandbox.exec(["./folder"]), "os_error");
  await sandbox.writeFile("plain.txt", "not a program");
  await refused(sandbox.exec(["./plain.txt"]), "os_error");
  await refused(
    sandbox.exec([
      "true",
      ..."x"
        .repeat(40)
        .split("")
        .map(() => "y".repeat(120_000)),
    ]),
    "os_error",
  );
});

test("a timeout beyond the maximum of a timer does not end a command immediately", async () => {
  const sandbox = await open();
  expect((await sandbox.exec("sleep 0.1; echo done", { timeoutMs: 2 ** 40 })).stdout).toBe("done\n");
});

test("aborting after the end has no effect, and no listener is left", async () => {
  const sandbox = await open();
  const controller = new AbortController();
  const remove = vi.spyOn(controller.signal, "removeEventListener");
  expect((await sandbox.exec(["true"], { signal: controller.signal })).exitCode).toBe(0);
  expect(remove).toHaveBeenCalledWith("abort", expect.any(Function));
  controller.abort();
});
