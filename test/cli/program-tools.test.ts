import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { builtProgram, type Ended, runHere } from "./run-skein.ts";

const MCP_SERVER = fileURLToPath(new URL("../mcp-server.mjs", import.meta.url));
const LIBRARY = pathToFileURL(join(builtProgram(), "../../index.js")).href;

/** A module with read-only tools that return their arguments. */
function moduleOf(...names: readonly string[]): string {
  const parameters = '{ type: "object", properties: { text: { type: "string" } }, required: ["text"] }';
  const lines = names.map(
    (name) =>
      `export const ${name} = defineTool({ name: "${name}", description: "Says it.", parameters: ${parameters}, effects: "reads", execute: ({ text }) => "${name} says " + text });`,
  );
  return [`import { defineTool } from ${JSON.stringify(LIBRARY)};`, ...lines, ""].join("\n");
}

/** A config with a tool `greet`, and an MCP server with tools `notes_…`, one of which needs no approval. */
function config(): string {
  const server = { command: process.execPath, args: [MCP_SERVER], prefix: "notes_", trust: { pid: "reads" } };
  return `${moduleOf("greet")}export default { tools: [greet], mcp: [${JSON.stringify(server)}] };\n`;
}

/** Runs the built program in a directory, with the lines as its input. */
async function run(cwd: string, args: readonly string[], lines: readonly string[] = []): Promise<Ended> {
  const env = { ...process.env, SKEIN_HOME: join(cwd, ".skein") };
  const child = spawn(process.execPath, ["--no-warnings", builtProgram(), ...args], { cwd, env });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part: Buffer) => (stdout += part));
  child.stderr.on("data", (part: Buffer) => (stderr += part));
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  const [code] = (await once(child, "close")) as [number];
  return { code, stdout, stderr };
}

/** Whether a process has ended; that may take a moment. */
async function isGone(pid: number): Promise<boolean> {
  const isThere = (): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  await expect.poll(isThere).toBe(false);
  return true;
}

test("chat calls tools of modules, of the config and of MCP servers, which end with it", async () => {
  const cwd = await makeDirectory();
  await writeFile(join(cwd, "tools.mjs"), moduleOf("find_order"));
  await writeFile(join(cwd, "skein.config.mjs"), config());
  const args = ["chat", "--tools", "tools.mjs", "--mcp", `"${process.execPath}" '${MCP_SERVER}'`];
  const { code, stdout, stderr } = await run(cwd, args, [
    "call find_order with 4711",
    "call greet with Ann",
    "call notes_pid",
    // This tool is not trusted.
    'call echo with {"text":"hello"}',
  ]);
  expect(stderr).toBe(`Loading ${join(cwd, "skein.config.mjs")}, which runs with your rights; --no-config skips it.\n`);
  expect(stdout).toContain("find_order says 4711");
  expect(stdout).toContain("greet says Ann");
  expect(stdout).toContain("No person can approve it here");
  const [, pid] = /notes_pid .*→ (\d+)/.exec(stdout) ?? [];
  expect([code, await isGone(Number(pid))]).toEqual([0, true]);
});

test("a model can neither read nor write the config, and without it the tools are missing", async () => {
  const cwd = await makeDirectory();
  await writeFile(join(cwd, "skein.config.mjs"), config());
  const lines = ["read skein.config.mjs", "write evil to skein.config.ts", "call greet with Ann"];
  const { stdout, stderr } = await run(cwd, ["chat", "--no-config", "--ask", "commands"], lines);
  expect(stderr).toBe("");
  expect(stdout.match(/hidden from tools/g)?.length).toBeGreaterThanOrEqual(2);
  expect(stdout).not.toContain("greet says");
  expect((await readdir(cwd)).sort()).toEqual([".skein", "skein.config.mjs"]);
});

test("serve gives its agents the same tools, and its MCP servers end with it", async () => {
  const cwd = await makeDirectory();
  await writeFile(join(cwd, "tools.mjs"), moduleOf("find_order"));
  await writeFile(join(cwd, "skein.config.mjs"), config());
  const args = ["serve", "--json", "--port", "0", "--store", "memory:", "--tools", "tools.mjs"];
  const env = { ...process.env, SKEIN_HOME: join(cwd, ".skein") };
  const child = spawn(process.execPath, ["--no-warnings", builtProgram(), ...args], { cwd, env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const client = createClient(JSON.parse(line) as { url: string; token: string });
  const said = async (input: string): Promise<string> => {
    const { header } = await client.sessions.create();
    const { runId } = await client.runs.start(header.id, { input });
    const results: string[] = [];
    for await (const event of client.runs.events(header.id, runId)) {
      if (event.type === "tool-finished") results.push(JSON.stringify(event));
    }
    return results.join("");
  };
  expect(await said("call find_order with 4711")).toContain("find_order says 4711");
  expect(await said("call greet with Ann")).toContain("greet says Ann");
  const [, pid] = /"(\d+)"/.exec(await said("call notes_pid")) ?? [];
  const ended = once(child, "close");
  child.kill("SIGTERM");
  expect([(await ended)[0], await isGone(Number(pid))]).toEqual([0, true]);
});

const refusals: [files: Record<string, string>, args: string[], code: number, said: RegExp][] = [
  [{}, ["--tools", "none.mjs"], 2, /^There is no file "none.mjs"; name a module that exports tools\.\n$/],
  [{ "a.mjs": "throw new Error('no luck')" }, ["--tools", "a.mjs"], 2, /^"a.mjs" cannot be loaded: no luck\n$/],
  [{ "a.mjs": "export const x = 1" }, ["--tools", "a.mjs"], 2, /^"a.mjs" must export a tool: [^\n]*\n$/],
  [
    { "a.mjs": moduleOf("one"), "b.mjs": moduleOf("one") },
    ["--tools", "a.mjs", "--tools", "b.mjs"],
    2,
    /^Two tools are named one, in "a.mjs" and in "b.mjs"; rename one, [^\n]*\n$/,
  ],
  [{ "a.mjs": moduleOf("run_code") }, ["--tools", "a.mjs"], 2, /^Two tools are named run_code, in the workspace and /],
  [{ "skein.config.mjs": "export default { tool: [] }" }, [], 2, /has the unknown field "tool"; [^\n]*\n$/],
  [
    { "skein.config.mjs": "export const tools = []" },
    [],
    2,
    /skein.config.mjs has no config as its default export; [^\n]*\n$/,
  ],
  [{ "skein.config.mjs": "export default { mcp: [{}] }" }, [], 2, /in skein.config is not an MCP server; [^\n]*\n$/],
  [{ "skein.config.mjs": "export default { tools: [{}] }" }, [], 2, /A tool of skein.config is invalid; [^\n]*\n$/],
  [
    {},
    ["--mcp", `${process.execPath} '${MCP_SERVER}' --broken`],
    1,
    /^The MCP server "[^"]+" does not answer: [^\n]*\n$/,
  ],
];

test.for(refusals)(
  "chat with %j and %j exits with %i and one sentence, and creates no store",
  async ([files, args, code, said]) => {
    const cwd = await makeDirectory();
    for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
    const before = process.cwd();
    vi.stubEnv("SKEIN_HOME", join(cwd, ".skein"));
    process.chdir(cwd);
    onTestFinished(() => {
      process.chdir(before);
      vi.unstubAllEnvs();
    });
    const ended = await runHere(["chat", ...args]);
    expect([ended.code, ended.stdout, ended.stderr.replace(/^Loading [^\n]*\n/, "")]).toEqual([
      code,
      "",
      expect.stringMatching(said),
    ]);
    expect(await readdir(cwd)).not.toContain(".skein");
  },
);

test("a config in TypeScript is loaded if Node can do so, else rejected with advice", async () => {
  const cwd = await makeDirectory();
  const typed = `${moduleOf("greet")}const tools: readonly unknown[] = [greet];\nexport default { tools };\n`;
  await writeFile(join(cwd, "skein.config.ts"), typed);
  const { code, stdout, stderr } = await run(cwd, ["chat"], ["call greet with Ann"]);
  if ("typescript" in process.features && process.features.typescript) expect(stdout).toContain("greet says Ann");
  else expect([code, stderr]).toEqual([2, expect.stringMatching(/cannot load TypeScript; use Node 22\.18 or later, /)]);
});

test("serve rejects tools beside --agents, and a store in a missing directory without --create", async () => {
  const serve = (...args: string[]) => runHere(["serve", "--port", "0", ...args], { signal: AbortSignal.abort() });
  const agents = await serve("--agents", "./agents.mjs", "--mcp", "x");
  expect(agents).toMatchObject({
    code: 2,
    stderr: "With --agents, the module of --agents defines the tools; leave out --mcp.\n",
  });
  const directory = await makeDirectory();
  const store = `sqlite:${join(directory, "none/skein.db")}`;
  expect(await serve("--store", store)).toMatchObject({
    code: 2,
    stderr: `There is no directory "${join(directory, "none")}" for the store; check the path, or let --create make it (in code, create: true).\n`,
  });
  vi.stubEnv("SKEIN_HOME", await makeDirectory());
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await serve("--store", store, "--create")).code).toBe(0);
  expect((await serve("--store", `sqlite:${join(directory, "skein.db")}`)).code).toBe(0);
  expect((await readdir(directory)).sort()).toEqual(expect.arrayContaining(["none", "skein.db"]));
});
