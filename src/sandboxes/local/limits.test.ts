import { stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import type { Sandbox, SandboxLimits } from "../../session/sandbox/sandbox.ts";
import { findControlGroups } from "./control-group.ts";
import { localBackend } from "./local-backend.ts";

const MEBIBYTE = 1024 ** 2;

async function open(context: TestContext, isolation: "required" | "off", limits: SandboxLimits): Promise<Sandbox> {
  const works = (await localBackend.reach?.({ isolation: "auto" }))?.isolated === true;
  if (isolation === "required" && !works) skipBecause(context, "bubblewrap does not work on this machine");
  const sandbox = await localBackend.open({ isolation, limits });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

describe.for(["required", "off"] as const)("with the isolation %s", (isolation) => {
  test("a command cannot write a file beyond fileBytes", async (context) => {
    const sandbox = await open(context, isolation, { fileBytes: MEBIBYTE });
    const failing = sandbox.exec("echo before; exec head -c 3000000 /dev/zero > large");
    await expect(failing).rejects.toMatchObject({
      kind: "limit_exceeded",
      message: expect.stringContaining("fileBytes"),
      output: { stdout: "before\n" },
    });
    expect((await stat(join(sandbox.workingDir, "large"))).size).toBe(MEBIBYTE);
    expect((await sandbox.exec("head -c 1000000 /dev/zero > small")).exitCode).toBe(0);
  });

  test("a command cannot use memory beyond memoryBytes: in total with control groups, else per process", async (context) => {
    const sandbox = await open(context, isolation, { memoryBytes: 300 * MEBIBYTE });
    if (!sandbox.capabilities.languages.includes("javascript"))
      skipBecause(context, "there is no node on this machine");
    const fill = (count: number): string =>
      `const all = []; for (let i = 0; i < ${count}; i++) all.push(Buffer.alloc(${10 * MEBIBYTE}, 1)); console.log("filled", all.length);`;
    expect((await sandbox.runCode("javascript", fill(2))).stdout).toBe("filled 2\n");
    const outcome = await sandbox.runCode("javascript", fill(60)).then(
      ({ stdout, exitCode }) => ({ kind: exitCode === 0 ? "done" : "failed", stdout }),
      ({ kind, output }) => ({ kind, stdout: output.stdout }),
    );
    const grouped = (await findControlGroups()) !== null;
    expect(outcome).toEqual({ kind: grouped ? "limit_exceeded" : "failed", stdout: "" });
  });

  test("a command cannot have more processes than the limit, with control groups even as root", async (context) => {
    if ((await findControlGroups()) === null && process.getuid?.() === 0) {
      skipBecause(context, "the system's own limit of processes does not bind root, and there are no control groups");
    }
    const sandbox = await open(context, isolation, { processes: 30 });
    const grouped = (await findControlGroups()) !== null;
    // Bounded: at most 80 processes, each of which ends within seconds.
    const bomb = "i=0; while [ $i -lt 80 ]; do sleep 3 & i=$((i+1)); echo started; done 2>/dev/null";
    const explode = async () => {
      const { kind, stdout } = await sandbox.exec(bomb).then(
        (result) => ({ kind: result.exitCode === 0 ? "done" : "failed", stdout: result.stdout }),
        (error) => ({ kind: error.kind, stdout: error.output.stdout }),
      );
      const started = (stdout.match(/started/g) ?? []).length;
      return { kind, enough: started >= 20, held: started <= 30 };
    };
    const fine = async () => (await sandbox.exec("for i in 1 2 3 4 5; do sleep 0.01 & done; wait; echo fine")).stdout;
    // A limit of the system stops the shell without a report.
    const expected = { kind: grouped ? "limit_exceeded" : "failed", enough: true, held: true };
    if (grouped || isolation === "required") {
      expect(await explode()).toEqual(expected);
      expect(await fine()).toBe("fine\n");
      return;
    }
    // The system counts all processes of the user, and other tests start and end some of them meanwhile.
    await expect.poll(explode).toEqual(expected);
    await expect.poll(fine).toBe("fine\n");
  });

  test("a command gets no more time than seconds, whatever timeout it has", async (context) => {
    const sandbox = await open(context, isolation, { seconds: 0.5 });
    await expect(sandbox.exec("sleep 60", { timeoutMs: 50_000 })).rejects.toMatchObject({ kind: "timeout" });
  });
});

test("a daemon that cleared its environment is killed with its command, with control groups", async (context) => {
  if ((await findControlGroups()) === null) skipBecause(context, "this process may not make control groups");
  const sandbox = await open(context, "off", {});
  const daemon = `setsid flock lock sh -c "touch ready; sleep 600" </dev/null >/dev/null 2>&1 &`;
  await sandbox.exec(`(env -i PATH="$PATH" setsid sh -c '${daemon}' &); while [ ! -e ready ]; do sleep 0.02; done`);
  expect((await sandbox.exec(["flock", "--nonblock", "lock", "true"])).exitCode).toBe(0);
});

test("/dev of an isolated command has the same size limit as its other private directories", async (context) => {
  const sandbox = await open(context, "required", { memoryBytes: 64 * MEBIBYTE });
  const { stdout } = await sandbox.exec(
    "df -k --output=size /dev/shm | tail -1; touch /dev/x; ls /dev/x; touch /dev/shm/x && echo x",
  );
  expect(stdout.trim().split(/\s+/)).toEqual([`${64 * 1024}`, "x"]);
});

test("a command's control group is removed when its call resolves", async (context) => {
  const hierarchies = await findControlGroups();
  if (hierarchies === null) skipBecause(context, "this process may not make control groups");
  const sandbox = await open(context, "off", {});
  const { stdout } = await sandbox.exec("cat /proc/self/cgroup");
  const name = /skein-\d+-\d+/.exec(stdout)?.[0] ?? "none";
  expect(name).toMatch(new RegExp(`^skein-${process.pid}-`));
  for (const { directory } of hierarchies) {
    await expect(stat(join(directory, name))).rejects.toMatchObject({ code: "ENOENT" });
  }
});
