import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { goldenText } from "../formats/foreign-samples.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { builtProgram, runHere, sampleStore } from "./run-skein.ts";

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  /** The token that it made for its user. */
  readonly token: string;
}

beforeAll(async () => {
  const home = await mkdtemp(join(tmpdir(), "skein-home-"));
  vi.stubEnv("SKEIN_HOME", home);
  return () => rm(home, { recursive: true });
});

/** Starts the built program as a server, resolves when it listens, and stops it after the test. */
async function startServer(...args: readonly string[]): Promise<Started> {
  return startServerIn({}, ...args);
}

/** The same with environment variables. */
async function startServerIn(
  variables: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Started> {
  const env = { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", ...variables };
  const child = spawn(process.execPath, [builtProgram(), "serve", "--json", "--port", "0", ...args], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  for await (const line of createInterface(child.stdout))
    return { child, ...(JSON.parse(line) as Omit<Started, "child">) };
  throw new Error(`The server ended before it listened: ${stderr}`);
}

test("serve listens, serves the sessions of its store, and exits with 0 on SIGTERM and on SIGINT", async () => {
  const store = await sampleStore();
  const ends = (["SIGTERM", "SIGINT"] as const).map(async (signal) => {
    const { child, ...server } = await startServer("--store", store);
    const plan = await createClient(server).sessions.get("plan");
    const closed = once(child, "close");
    child.kill(signal);
    return [plan.header.id, ...(await closed)];
  });
  expect(await Promise.all(ends)).toEqual([
    ["plan", 0, null],
    ["plan", 0, null],
  ]);
});

test("serve accepts only the tokens of its file", async () => {
  const file = join(await makeDirectory(), "tokens");
  const token = async (...args: string[]) => {
    const { stdout } = await runHere(["token", "--json", "--token-file", file, ...args]);
    return (JSON.parse(stdout) as { token: string }).token;
  };
  const [ann, eve] = [await token("--user", "ann"), await token("--user", "eve")];
  const { url } = await startServer("--store", await sampleStore(), "--token-file", file);
  const status = async (given?: string) =>
    (
      await fetch(
        `${url}/api/sessions/plan`,
        given === undefined ? {} : { headers: { authorization: `Bearer ${given}` } },
      )
    ).status;
  expect(await Promise.all([status(ann), status(eve), status("skein_guess"), status()])).toEqual([200, 404, 401, 401]);
});

test("serve gives its agents tools for the workspace, and asks before those that need approval", async () => {
  const workspace = await makeDirectory();
  const client = createClient(await startServer("--store", "memory:", "--workspace", workspace, "--ask", "commands"));
  const id = (await client.sessions.create()).header.id;
  const run = await client.runs.start(id, { input: "write hello to a.txt, then run cat a.txt" });
  for await (const event of client.runs.events(id, run.runId)) {
    if (event.type !== "approval-required") continue;
    expect(event.approval).toMatchObject({ name: "run_shell_command", effects: "commands" });
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("hello");
    await client.runs.deny(id, event.approval.question, { reason: "Not now." });
  }
  expect((await client.runs.get(id, run.runId)).status).toBe("finished");
});

test("another process answers the question of an active run of the server, naming only the session", async () => {
  const workspace = await makeDirectory();
  const store = `sqlite:${join(await makeDirectory(), "skein.db")}`;
  const client = createClient(await startServer("--store", store, "--workspace", workspace));
  const id = (await client.sessions.create()).header.id;
  const { runId } = await client.runs.start(id, { input: "write hello to a.txt" });
  const events = client.runs.events(id, runId);
  for await (const { type } of events) {
    if (type !== "approval-required") continue;
    const open = await runHere(["runs", id, "--store", store, "--json"]);
    expect(JSON.parse(open.stdout)).toMatchObject({
      runs: [{ runId, state: "running", questions: [{ callId: expect.any(String) }] }],
    });
    const { code, stdout } = await runHere(["approve", id, "--store", store]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Approved: write_workspace_file .*\nThe run continues\.\n$/),
    ]);
  }
  expect((await client.runs.get(id, runId)).status).toBe("finished");
  expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("hello");
});

test("serve posts to the webhook that a run has parked, without its question, and rejects an invalid URL", async () => {
  const posted: string[] = [];
  const hook = createHttpServer((request, response) => {
    request.on("data", (chunk: Buffer) => posted.push(chunk.toString())).on("end", () => response.end());
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void hook.close());
  await once(hook, "listening");
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/parked`;
  const options = ["--store", "memory:", "--workspace", await makeDirectory(), "--park-after", "0", "--webhook", url];
  const client = createClient(await startServer(...options));
  const sessionId = (await client.sessions.create()).header.id;
  const { runId } = await client.runs.start(sessionId, { input: "write a secret to a.txt" });
  await expect.poll(() => posted).toHaveLength(1);
  const name = "write_workspace_file";
  expect(JSON.parse(posted[0] as string)).toMatchObject({ type: "parked", sessionId, runId, questions: [{ name }] });
  expect(posted[0]).not.toContain("secret");
  const refused = await runHere(["serve", "--store", "memory:", "--port", "0", "--webhook", "nowhere"]);
  expect(refused).toMatchObject({ code: 2, stderr: 'The webhook "nowhere" is not an http or https address.\n' });
});

test("serve without a workspace has agents without tools", async () => {
  const { agents, groups } = await createClient(await startServer("--store", "memory:")).catalogue();
  expect([agents, groups]).toEqual([[{ name: "assistant", model: "offline/offline", tools: [] }], []]);
});

test("serve offers the models of providers with a key, and always the offline model", async () => {
  const server = await startServerIn({ ANTHROPIC_API_KEY: "not-a-key" }, "--store", "memory:");
  const providers = (await createClient(server).catalogue()).models.map(({ id }) => id.split("/")[0]);
  expect(new Set(providers)).toEqual(new Set(["offline", "anthropic"]));
});

test.for([
  [
    {},
    /^No agent is configured and no API key is set: the agent assistant answers with the offline model, .* --agent NAME=PROVIDER\/MODEL\.$/,
  ],
  [
    { OPENAI_API_KEY: "not-a-key" },
    /^No agent is configured: the agent assistant answers with openai\/\S+, the first model whose key is set\. Choose another with --agent NAME=PROVIDER\/MODEL\.$/,
  ],
  [
    { ANTHROPIC_API_KEY: "not-a-key", OPENAI_API_KEY: "not-a-key" },
    /^No agent is configured: the agent assistant answers with anthropic\//,
  ],
] as const)("serve without --agent prints which model answers, with the keys of %j", async ([keys, line]) => {
  const env = { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", ...keys };
  const child = spawn(process.execPath, [builtProgram(), "serve", "--port", "0", "--store", "memory:"], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  expect((await lines.next()).value).toMatch(/^Skein listens on /);
  expect((await lines.next()).value).toMatch(line);
});

test("serve creates sample sessions once, one of them with many tool rounds, and offers a sample group", async () => {
  const store = `sqlite:${join(await makeDirectory(), "skein.db")}`;
  const names = async (): Promise<string[]> => {
    const { child, ...server } = await startServer("--store", store, "--samples");
    const client = createClient(server);
    expect((await client.catalogue()).groups).toMatchObject([{ name: "newsroom" }]);
    const page = await client.sessions.list();
    const fixed = page.items.find(({ name }) => name?.startsWith("Fix"));
    const { turns } = await client.sessions.state(fixed?.header.id ?? "");
    expect(turns.filter(({ role }) => role === "tool")).toHaveLength(9);
    const closed = once(child, "close");
    child.kill("SIGTERM");
    await closed;
    return page.items.map(({ name }) => name ?? "").sort();
  };
  const made = await names();
  expect(made).toContain("Plan a trip");
  expect(await names()).toEqual(made);
});

test("serve follows the sessions of other programs", async () => {
  const home = await makeDirectory();
  const path = join(home, "sessions", "one.jsonl");
  const lines = goldenText("pi-0.73.1.jsonl").split("\n");
  await mkdir(join(home, "sessions"));
  await writeFile(path, `${lines.slice(0, 8).join("\n")}\n`);
  const store = `jsonl:${await makeDirectory()}`;
  const server = await startServerIn({ PI_CODING_AGENT_DIR: home }, "--store", store, "--follow", "all");
  const { sessions } = createClient(server);
  await expect.poll(async () => (await sessions.list()).items).toHaveLength(1);
  await appendFile(path, lines.slice(8).join("\n"));
  await expect.poll(async () => (await sessions.list()).items[0]?.leafId).toBe("a57771d9");
});

test("serve gives a browser the studio", async () => {
  const answer = await fetch((await startServer("--store", "memory:")).url);
  expect(await answer.text()).toContain("Skein studio");
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'self'");
});

// biome-ignore format: a table reads best with one mistake per line.
const refusals: [why: string, args: string[], code: number, said: RegExp][] = [
  ["another machine without tokens", ["--host", "0.0.0.0"], 2, /token/],
  ["a token file and no door at all", ["--token-file", "/nowhere/tokens", "--open-to-this-machine"], 2, /^Give either --open-to-this-machine or --token-file/],
  ["a token file that is not there", ["--token-file", "/nowhere/tokens"], 2, /^The token file "\/nowhere\/tokens" cannot be read; check the path\.\n$/],
  ["an agent without a model", ["--agent", "clerk"], 2, /^--agent is "clerk"; give NAME=MODEL with a name that no other agent has, as in clerk=offline\.\n$/],
  ["two agents of one name", ["--agent", "a=offline", "--agent", "a=offline"], 2, /^--agent is "a=offline"; give NAME=MODEL/],
  ["a model that nobody has", ["--agent", "a=nowhere/x"], 2, /nowhere/],
  ["a workspace that is not there", ["--workspace", "/nowhere/at/all"], 2, /^There is no directory "\/nowhere\/at" for the workspace; check the path, or let --create make it \(in code, create: true\)\.\n$/],
  ["a value of --ask that does not exist", ["--ask", "some"], 2, /--ask/],
  ["a port that is no number", ["--port", "http"], 2, /^--port is "http"; give a whole number of 0 or more\.\n$/],
];

test.for(refusals)("serve rejects %s", async ([, args, code, said]) => {
  const ended = await runHere(["serve", "--store", "memory:", "--port", "0", ...args]);
  expect([ended.code, ended.stdout]).toEqual([code, ""]);
  expect(ended.stderr).toMatch(said);
});

test("serve prints one sentence if its port is taken, and stops when it is interrupted", async () => {
  const interrupt = new AbortController();
  let listening: (url: string) => void = () => {};
  const url = new Promise<string>((resolve) => {
    listening = resolve;
  });
  const first = runHere(["serve", "--store", "memory:", "--port", "0"], {
    signal: interrupt.signal,
    onOutput: (text) => listening(text),
  });
  const port = new URL(/http\S+(?=;)/.exec(await url)?.[0] ?? "").port;
  const second = await runHere(["serve", "--store", "memory:", "--port", port]);
  expect(second).toMatchObject({ code: expect.toSatisfy((code: number) => code > 0), stdout: "" });
  expect(second.stderr).toMatch(new RegExp(`^[^\\n]*${port}[^\\n]*\\n$`));
  interrupt.abort();
  expect(await first).toMatchObject({ code: 0, stderr: "" });
});
