import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { type Client, createClient } from "../../src/http/client/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { builtProgram } from "../cli/run-skein.ts";
import { allOf, lasting, nextOf } from "./runs-server.ts";

test("after a server is killed in the middle of a run, the next one continues it, and watch and reader follow without loss or repetition", async () => {
  const path = await databasePath();
  const first = await startServer(path);
  const client = createClient({ url: first.url });
  const { header } = await client.sessions.create({ name: "Bills" });
  const { id } = header;
  const watching = collect(client, id);
  const run = await client.runs.start(id, { input: "Pay." });
  const reading = allOf(client, run);
  const { question } = (await nextOf(client, run, "approval-required")).approval;

  const gone = once(first.child, "exit");
  first.child.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);
  const second = await startServer(path, Number(new URL(first.url).port));
  expect(second.url).toBe(first.url);

  await expect.poll(async () => (await client.runs.get(id, run.runId)).status).toBe("running");
  expect((await client.runs.get(id, run.runId)).questions).toMatchObject([{ question, callId: "pay" }]);
  await client.runs.approve(id, question);
  expect(lasting(await reading).map(({ type }) => type)).toEqual([
    ...["run-started", "round-finished", "tool-finished", "round-finished", "approval-required"],
    ...["run-started", "tool-finished", "round-finished", "run-finished"],
  ]);

  const log: Entry[] = [];
  for await (const entry of client.sessions.entriesAll(id)) log.push(entry);
  expect(await watching).toEqual(log);
  const phases = log.flatMap((entry) => (entry.type === "run" ? [`${entry.runId} ${entry.phase}`] : []));
  expect(phases).toEqual(["started", "started", "finished"].map((phase) => `${run.runId} ${phase}`));
  const results = log.flatMap((entry) =>
    entry.type === "message" && entry.message.role === "tool" ? entry.message : [],
  );
  expect(results.map(({ content }) => content)).toEqual(["look done", "pay done"]);
});

test("four programs serve one file: one has a run, a second streams it, a third answers, and a fourth cancels the next", async () => {
  const path = await databasePath();
  const clients = await Promise.all(Array.from({ length: 4 }, async () => createClient(await serveProgram(path))));
  const [one, two, three, four] = clients as [Client, Client, Client, Client];
  const { id } = (await one.sessions.create()).header;
  const run = await one.runs.start(id, { input: "run echo hello" });
  const seen: string[] = [];
  for await (const event of two.runs.events(id, run.runId)) {
    seen.push(event.type);
    if (event.type === "approval-required") await three.runs.approve(id, event.approval.question);
  }
  // They share a file and no queue: live events arrive only in the process of the run.
  expect(seen).toEqual([
    ...["run-started", "round-finished", "approval-required", "tool-finished"],
    ...["events-dropped", "round-finished", "run-finished"],
  ]);
  const next = await two.runs.start(id, { input: "run echo again" });
  await nextOf(three, next, "approval-required");
  await four.runs.cancel(id, next.runId);
  for await (const event of one.runs.events(id, next.runId)) seen.push(event.type);
  expect(seen.at(-1)).toBe("run-failed");
  expect(await three.runs.get(id, next.runId)).toMatchObject({ status: "cancelled" });
});

test("a client sees what another process appends to the session that it watches", async () => {
  const path = await databasePath();
  const { url } = await startServer(path);
  const client = createClient({ url });
  const { header } = await client.sessions.create({ name: "Shared" });
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  const manager = new SessionManager({ store });
  const seen: Entry[] = [];
  for await (const entry of client.sessions.watch(header.id, { after: -1 })) {
    seen.push(entry);
    if (seen.length === 3) break;
    await manager.addTurn(header.id, { role: "user", content: `turn ${seen.length}` });
  }
  expect(seen.map(({ seq }) => seq)).toEqual([0, 1, 2]);
  expect(seen.slice(1)).toMatchObject([{ message: { content: "turn 1" } }, { message: { content: "turn 2" } }]);
});

async function databasePath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-runs-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
  return join(directory, "skein.db");
}

/** A server in a separate process, which is stopped after the test. */
async function startServer(path: string, port = 0): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const program = fileURLToPath(new URL("./programs/serve-runs.mjs", import.meta.url));
  const args = ["--no-warnings", program, path, String(port)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`The server ended with ${code} before it listened.`);
  });
  const [url] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  ended.catch(() => {});
  return { url: url as string, child };
}

/** The program's own server on a file, with tools that ask first. */
async function serveProgram(path: string): Promise<{ readonly url: string }> {
  const workspace = dirname(path);
  const args = ["--json", "--port", "0", "--open-to-this-machine", "--store", `sqlite:${path}`, "--trust-store"];
  const tools = ["--workspace", workspace, "--ask", "writes"];
  const env = { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", SKEIN_HOME: join(workspace, "home") };
  const child = spawn(process.execPath, [builtProgram(), "serve", ...args, ...tools], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(createInterface(child.stdout), "line");
  return JSON.parse(line as string) as { url: string };
}

/** All entries of a session as a watch gives them, up to the end of a run that went well. */
async function collect(client: Client, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of client.sessions.watch(sessionId, { after: -1 })) {
    entries.push(entry);
    if (entry.type === "run" && entry.phase === "finished") break;
  }
  return entries;
}
