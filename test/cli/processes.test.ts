import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { say } from "../moving/sample-store.ts";
import { skipBecause } from "../skip.ts";
import { builtProgram, runProcess, sampleStore } from "./run-skein.ts";

const run = promisify(execFile);
/** Runs a command line on a pseudo-terminal; part of util-linux. */
const terminalProgram = "script";

/** A store whose only session is larger than the buffer of a pipe. */
function longStore(): Promise<string> {
  return sampleStore(async (store) => {
    await store.create(createHeader({ id: "long" }));
    const drafts = Array.from({ length: 40 }, (_, index) => say(`m${index}`, "a long line ".repeat(2000)));
    await store.append("long", drafts);
  });
}

test("ends with 0, 1 or 2 as documented, with the result on the standard output and the reason on the other", async () => {
  const store = await sampleStore();
  const [well, missing, mistake] = await Promise.all([
    runProcess("rename", "plan-b", "B", "--store", store),
    runProcess("show", "nobody", "--store", store),
    runProcess("show", "--store", store),
  ]);
  expect(well).toEqual({ code: 0, stdout: "Session plan-b is named B.\n", stderr: "" });
  expect(missing).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^There is no session [^\n]+\n$/),
  });
  expect(mistake).toMatchObject({ code: 2, stdout: "", stderr: "show needs <session>. See skein show --help.\n" });
});

test("uses the store in its home, and creates none by reading", async () => {
  const store = await sampleStore();
  const home = store.slice("sqlite:".length, -"/skein.db".length);
  const list = (at: string) =>
    run(process.execPath, [builtProgram(), "list", "--json"], { env: { ...process.env, SKEIN_HOME: at } });
  const nowhere = list(`${home}/nowhere`);
  expect(JSON.parse((await list(home)).stdout)).toMatchObject({ sessions: [{ id: "plan-b" }, { id: "plan" }] });
  expect(JSON.parse((await nowhere).stdout)).toMatchObject({ sessions: [] });
  expect(existsSync(`${home}/nowhere`)).toBe(false);
});

test("prints a long result completely into a pipe, and exits silently when the reader closes it", async () => {
  const store = await longStore();
  const whole = run(process.execPath, [builtProgram(), "show", "long", "--all", "--store", store], { maxBuffer: 1e7 });
  const cut = [
    ["show", "long", "--all"],
    ["export", "long"],
  ].map(async (args) => {
    const child = spawn(process.execPath, [builtProgram(), ...args, "--store", store]);
    const ended = once(child, "close");
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    await once(child.stdout, "data");
    child.stdout.destroy();
    return [args[0], (await ended)[0], stderr];
  });
  expect(await Promise.all(cut)).toEqual([
    ["show", 0, ""],
    ["export", 0, ""],
  ]);
  const lines = (await whole).stdout.split("\n");
  expect(lines.filter((line) => line.startsWith("a long line"))).toHaveLength(40);
});

test("shows colours on a terminal, and none with NO_COLOR or --no-color", async (context) => {
  if (spawnSync(terminalProgram, ["--version"]).error !== undefined)
    skipBecause(context, "the program script of util-linux is not installed");
  const store = await sampleStore();
  const { NO_COLOR: _none, FORCE_COLOR: _forced, CI: _service, ...inherited } = process.env;
  const onTerminal = async (more: string, env: NodeJS.ProcessEnv = {}) => {
    const line = `'${process.execPath}' '${builtProgram()}' show plan --store '${store}' ${more}`;
    const { stdout } = await run(terminalProgram, ["-qec", line, "/dev/null"], {
      env: { ...inherited, TERM: "xterm-256color", ...env },
    });
    return stdout;
  };
  const [coloured, asked, told] = await Promise.all([
    onTerminal(""),
    onTerminal("--no-color"),
    onTerminal("", { NO_COLOR: "1" }),
  ]);
  expect(coloured).toContain("\u001b[32muser\u001b[0m");
  for (const plain of [asked, told]) {
    expect(plain).toContain("user  ");
    expect(plain).not.toContain("\u001b[");
  }
});
