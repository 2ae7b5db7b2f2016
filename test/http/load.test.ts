import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, get, type IncomingMessage, request, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { offline } from "../../src/models/index.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { vanishings } from "../torture/http-vanish.mjs";
import { startTestServer, type TestServer } from "./server-support.ts";

const STREAMS = 200;
const POLL = { timeout: 60_000, interval: 10 };

test("each of 200 streams gets its events, streams of disconnected clients are closed, and a drain leaves nothing open", async () => {
  const answers = followAnswers();
  const store = await openTemporaryStore();
  const agents = [createAgent({ name: "helper", prompt: "Help.", model: offline({ delayMs: 100 }) })];
  await using server = await startTestServer({ store, agents, limits: { streamsPerUser: STREAMS + 10 } });
  const sessionId: string = (await server.call("POST", "/api/sessions", {})).body.header.id;
  const streams = await Promise.all(Array.from({ length: STREAMS }, () => openStream(server, sessionId)));
  expect(answers.open.size).toBe(STREAMS);

  const say = (content: string) => server.call("POST", `/api/sessions/${sessionId}/turns`, { role: "user", content });
  await say("For everyone.");
  await expect.poll(() => streams.filter(({ text }) => text.includes("For everyone.")).length, POLL).toBe(STREAMS);

  const gone = streams.splice(0, STREAMS / 2);
  for (const { response } of gone) response.destroy();
  for (const vanish of Object.values(vanishings)) await vanish(new URL(server.url), sessionId);
  await expect.poll(() => answers.open.size, POLL).toBe(STREAMS / 2);
  await say("For those who stayed.");
  await expect.poll(() => streams.filter(({ text }) => text.includes("who stayed.")).length, POLL).toBe(STREAMS / 2);

  const run = await server.call("POST", `/api/sessions/${sessionId}/runs`, { input: "Hello", ifBusy: "enqueue" });
  expect(run.status).toBe(202);
  // A run that has not started when a server shuts down is left to the next one.
  const path = `/api/sessions/${sessionId}/runs/${run.body.runId}`;
  await expect.poll(async () => (await server.call("GET", path)).body.status, POLL).not.toBe("requested");
  const half = await sendHalf(server, sessionId);
  answers.cut = 0;
  const closed = server.server.close({ drainMs: 20_000 });
  half.finish();
  expect(await half.answered).toMatchObject({ statusCode: 201, headers: { connection: "close" } });
  await closed;

  expect(streams.filter(({ response }) => response.complete).length).toBe(STREAMS / 2);
  expect(answers).toMatchObject({ open: new Set(), cut: 0 });
  const head = await store.head(sessionId);
  expect(head?.openRuns).toEqual([]);
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
});

/** The answers in progress of all servers in this process, and how many were cut off. */
function followAnswers(): { readonly open: Set<ServerResponse>; cut: number } {
  const answers = { open: new Set<ServerResponse>(), cut: 0 };
  const follow = (message: unknown): void => {
    const { response } = message as { response: ServerResponse };
    answers.open.add(response);
    response.once("close", () => {
      answers.open.delete(response);
      if (!response.writableFinished) answers.cut += 1;
    });
  };
  subscribe("http.server.request.start", follow);
  onTestFinished(() => void unsubscribe("http.server.request.start", follow));
  return answers;
}

async function openTemporaryStore(): Promise<SessionStore> {
  const folder = await mkdtemp(join(tmpdir(), "skein-load-"));
  const store = await openSqliteStore({ path: join(folder, "skein.db") });
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  return store;
}

interface Stream {
  readonly response: IncomingMessage;
  text: string;
}

async function openStream({ url }: TestServer, sessionId: string): Promise<Stream> {
  const asked = get(`${url}/api/sessions/${sessionId}/watch`, { agent: false });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const stream = { response, text: "" };
  response.setEncoding("utf8").on("data", (chunk: string) => {
    stream.text += chunk;
  });
  // A client that disconnects gets an incomplete answer.
  response.on("error", () => {});
  expect(response.statusCode).toBe(200);
  return stream;
}

/** A request whose second half is sent on demand, over a keep-alive connection. */
async function sendHalf(
  { url }: TestServer,
  sessionId: string,
): Promise<{ readonly finish: () => void; readonly answered: Promise<IncomingMessage> }> {
  const [first, second] = ['{"role":"user",', '"content":"Late."}'];
  const headers = { "content-type": "application/json", "content-length": first.length + second.length };
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const asked = request(`${url}/api/sessions/${sessionId}/turns`, { method: "POST", headers, agent });
  const answered = once(asked, "response").then(([response]: IncomingMessage[]) =>
    (response as IncomingMessage).resume(),
  );
  const begun = new Promise<void>((resolve) => {
    const heard = (): void => {
      unsubscribe("http.server.request.start", heard);
      resolve();
    };
    subscribe("http.server.request.start", heard);
  });
  asked.write(first);
  await begun;
  return { finish: () => void asked.end(second), answered };
}
