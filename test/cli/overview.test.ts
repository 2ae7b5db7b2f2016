import { execFile, spawnSync } from "node:child_process";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { printOverview } from "../../src/cli/overview.ts";
import { openManager } from "../../src/lifecycle/open-manager.ts";
import { skipBecause } from "../skip.ts";
import { foreignHome } from "./foreign-home.ts";
import { builtProgram, runHere } from "./run-skein.ts";

const run = promisify(execFile);
/** Runs a command line on a pseudo-terminal; part of util-linux. */
const terminalProgram = "script";

async function overview(): Promise<string> {
  let text = "";
  await printOverview({ out: (piece) => void (text += piece), colours: false });
  return text;
}

test("shows the sessions of the default store, and what other programs left, counted by the names of their files", async () => {
  await foreignHome({ unreadable: true });
  expect(await overview()).toBe(
    [
      "Sessions here       0 in ~/skein",
      "On this machine     Codex 1 · opencode · pi 2",
      "                    skein serve --follow all     view, search and continue them",
      "                    opencode export <session> > talk.json && skein import talk.json  import a session of opencode",
      "Begin               skein chat · skein serve · skein docs · skein --help",
      "",
    ].join("\n"),
  );
  await using manager = await openManager();
  await manager.create({ userId: "local" });
  expect(await overview()).toContain("Sessions here       1 in ~/skein\n");
});

test("creates no store, and does not list programs that are not installed", async () => {
  const { directory } = await foreignHome({ empty: true });
  expect(await overview()).toBe(
    "Sessions here       0 in ~/skein\nBegin               skein chat · skein serve · skein docs · skein --help\n",
  );
  await expect(stat(join(directory, "skein"))).rejects.toThrow("ENOENT");
});

test("names the servers that run, and a store that is not available without its password", async () => {
  const { directory } = await foreignHome({ empty: true });
  await mkdir(join(directory, "skein", "servers"), { recursive: true, mode: 0o700 });
  const server = { url: "http://127.0.0.1:4117", token: "secret", startedAt: "2026-01-02T03:04:05.000Z" };
  await writeFile(join(directory, "skein", "servers", "4117.json"), JSON.stringify(server));
  vi.stubEnv("SKEIN_STORE", "mysql://ann:password@db/skein");
  const text = await overview();
  expect(text).toContain("Servers             http://127.0.0.1:4117\n");
  expect(text).toContain("mysql://…@db/skein is not available");
  expect(text).not.toMatch(/secret|password/);
});

test("shows it on a terminal only: in a pipe and with --json, skein prints its help", async (context) => {
  if (spawnSync(terminalProgram, ["--version"]).error !== undefined)
    skipBecause(context, "the program script of util-linux is not installed");
  const { environment } = await foreignHome();
  const { NO_COLOR: _none, FORCE_COLOR: _forced, CI: _service, ...inherited } = process.env;
  const env = { ...inherited, ...environment, TERM: "xterm-256color" };
  const onTerminal = (more: string) =>
    run(terminalProgram, ["-qec", `'${process.execPath}' '${builtProgram()}' ${more}`, "/dev/null"], { env });
  const [terminal, plain, json, pipe] = await Promise.all([
    onTerminal(""),
    onTerminal("--no-color"),
    onTerminal("--json"),
    run(process.execPath, [builtProgram()], { env }),
  ]);
  expect(terminal.stdout).toMatch(/Sessions here +\S*0 in ~\/skein\r\n[\s\S]*Codex 1 · opencode · pi 2/);
  expect(terminal.stdout).toContain("\u001b[1mBegin");
  expect(plain.stdout).toMatch(/^Sessions here[\s\S]+Begin/);
  expect(plain.stdout).not.toContain("\u001b");
  expect(json.stdout).toMatch(/^Usage: skein <command>/);
  expect(pipe.stdout).toMatch(/^Usage: skein <command>/);
});

test("import --all imports what every program keeps in files, leaves out databases, and refuses a file beside it", async () => {
  await foreignHome();
  const first = await runHere(["import", "--all", "--json"]);
  expect(JSON.parse(first.stdout)).toMatchObject({ files: 3, sessions: { new: 3, same: 0 }, lines: { lost: 0 } });
  const again = await runHere(["import", "--all", "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ files: 3, entries: 0, sessions: { new: 0, same: 3 } });
  for (const more of [["talk.jsonl"], ["--from", "pi"]]) {
    const { code, stderr } = await runHere(["import", "--all", ...more]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^Give --all or (a file|--from), not both\.\n$/)]);
  }
});

test("loads neither the core nor a store to show it", async () => {
  const chunks = join(dirname(builtProgram()), "..", "chunks");
  const loaded = new Set<string>();
  const load = async (name: string): Promise<void> => {
    if (loaded.has(name)) return;
    loaded.add(name);
    const text = await readFile(join(chunks, name), "utf8");
    for (const [, next = ""] of text.matchAll(/^(?:import|export) .*from "\.\/([^"]+)";$/gm)) await load(next);
  };
  await load("overview.js");
  expect([...loaded]).toContain("find-programs.js");
  expect([...loaded]).not.toContain("core.js");
});
