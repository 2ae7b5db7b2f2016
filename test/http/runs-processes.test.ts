import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { type Client, createClient } from "../../src/http/client/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/entry.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { nextOf } from "./runs-server.ts";

test("after a server is killed in the middle of a run, a watch goes on at the next one without loss or repetition, and so does the run", async () => {
  const path = await databasePath();
  const first = await startServer(path);
  const client = createClient({ url: first.url });
  const { header } = await client.sessions.create({ name: "Bills" });
  const { id } = header;
  const watching = collect(client, id);
  const before = await client.runs.start(id, { input: "Pay." });
  await nextOf(client, before, "approval-required");

  const gone = once(first.child, "exit");
  first.child.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);
  const second = await startServer(path, Number(new URL(first.url).port));
  expect(second.url).toBe(first.url);

  await expect(client.runs.get(sessionId, before.runId)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  const after = await client.runs.recover(id);
  const runId = after?.runId ?? "";
  expect(await nextOf(client, run, "approval-required")).toMatchObject({ approval: { callId: "pay" } });
  await client.runs.approve(runId, "pay");
  await nextOf(client, run, "run-finished");

  const log: Entry[] = [];
  for await (const entry of client.sessions.entriesAll(id)) log.push(entry);
  expect(await watching).toEqual(log);
  const phases = log.flatMap((entry) => (entry.type === "run" ? [`${entry.runId} ${entry.phase}`] : []));
  expect(phases).toEqual([
    `${before.runId} started`,
    `${before.runId} failed`,
    `${runId} started`,
    `${runId} finished`,
  ]);
  const results = log.flatMap((entry) =>
    entry.type === "message" && entry.message.role === "tool" ? entry.message : [],
  );
  expect(results.map(({ content }) => content)).toEqual(["look done", "pay done"]);
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

/** A server in a process of its own, which is gone after the test. */
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

/** All entries of a session as a watch gives them, up to the end of a run that went well. */
async function collect(client: Client, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of client.sessions.watch(sessionId, { after: -1 })) {
    entries.push(entry);
    if (entry.type === "run" && entry.phase === "finished") break;
  }
  return entries;
}
