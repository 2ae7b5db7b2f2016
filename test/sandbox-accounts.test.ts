import { execFile, spawn } from "node:child_process";
import { chown, cp, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { localBackend } from "../src/sandboxes/local/index.ts";
import { skipBecause } from "./skip.ts";

const NOBODY = 65_534;
const BUILT = fileURLToPath(new URL("../dist", import.meta.url));

/** A copy of the built package for the other account, which may not be able to enter this checkout. */
async function copyBuilt(directory: string): Promise<string> {
  const copy = join(directory, "package");
  await mkdir(copy);
  await writeFile(join(copy, "package.json"), '{ "type": "module" }');
  for (const part of ["chunks", "sandboxes"]) await cp(join(BUILT, part), join(copy, part), { recursive: true });
  await promisify(execFile)("chmod", ["-R", "a+rX", copy]);
  return join(copy, "sandboxes/index.js");
}

/** Runs a program as another account of the machine, in a separate directory; resolves to its output. */
async function asNobody(context: TestContext, program: string): Promise<unknown> {
  if (process.getuid?.() !== 0) skipBecause(context, "only root can start a program as another account");
  if (!(await localBackend.reach?.({}))?.isolated) skipBecause(context, "bubblewrap does not work on this machine");
  const directory = await realpath(await mkdtemp("/var/tmp/skein-nobody-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await chown(directory, NOBODY, NOBODY);
  const text = `import { localBackend } from ${JSON.stringify(await copyBuilt(directory))};
    const workingDir = ${JSON.stringify(join(directory, "work"))};
    const open = (spec) => localBackend.open({ workingDir, ...spec });
    ${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", text], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: directory,
    env: { PATH: process.env["PATH"], HOME: directory, SECRET_KEY: "secret" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([child.stdout, child.stderr].map((stream) => stream.toArray()));
  const printed = Buffer.concat(out as Buffer[]).toString();
  expect(printed, Buffer.concat(err as Buffer[]).toString()).not.toBe("");
  return JSON.parse(printed);
}

test("an unprivileged account gets the same isolation as root: its files are writable, keys and homes are hidden", async (context) => {
  const answer = await asNobody(
    context,
    `const sandbox = await open({ isolation: "required" });
     const free = await open({ isolation: "off" });
     const look = "cat /proc/" + process.pid + "/environ | tr '\\\\0' '\\\\n' | grep SECRET_KEY";
     const writes = await sandbox.exec("echo kept > kept; cat kept; ls -A ~; git init -q . && echo git; node -p 1+1");
     const hidden = await sandbox.exec(look + "; cat /etc/shadow");
     const open_ = await free.exec(look);
     console.log(JSON.stringify([writes.stdout, hidden.stdout, open_.stdout]));`,
  );
  expect(answer).toEqual(["kept\nwork\ngit\n2\n", "", "SECRET_KEY=secret\n"]);
});

test("the limit of processes holds for an unprivileged account, isolated or not, and does not count processes of others", async (context) => {
  const answer = await asNobody(
    context,
    `const bomb = "i=0; while [ $i -lt 120 ]; do sleep 2 & i=$((i+1)); echo started; done 2>/dev/null";
     const counts = [];
     for (const isolation of ["required", "off"]) {
       const sandbox = await open({ isolation, limits: { processes: 40 } });
       const { exitCode, stdout } = await sandbox.exec(bomb).catch(({ output }) => ({ exitCode: 1, stdout: output.stdout }));
       counts.push({ failed: exitCode !== 0, started: stdout.split("started").length - 1 });
     }
     console.log(JSON.stringify(counts));`,
  );
  for (const { failed, started } of answer as { failed: boolean; started: number }[]) {
    expect({ failed, enough: started >= 25, held: started <= 40 }).toEqual({ failed: true, enough: true, held: true });
  }
});

test("the limit of memory holds for each process of an unprivileged account", async (context) => {
  const answer = await asNobody(
    context,
    `const fill = "const all = []; for (let i = 0; i < 60; i++) all.push(Buffer.alloc(10 << 20, 1)); console.log(all.length)";
     const kinds = [];
     for (const isolation of ["required", "off"]) {
       const sandbox = await open({ isolation, limits: { memoryBytes: 300 << 20 } });
       const { exitCode, stdout } = await sandbox.exec(["node", "-e", fill]).catch(({ output }) => ({ exitCode: 1, stdout: output.stdout }));
       kinds.push([exitCode === 0, stdout]);
     }
     console.log(JSON.stringify(kinds));`,
  );
  expect(answer).toEqual([
    [false, ""],
    [false, ""],
  ]);
});
