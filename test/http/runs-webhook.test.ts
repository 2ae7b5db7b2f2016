import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { answering } from "./runs-agents.ts";
import { nextOf, openRunServer } from "./runs-server.ts";

/** A service that answers with these statuses in order, and the requests that it received. */
async function openService(...statuses: readonly number[]) {
  const told: { readonly headers: IncomingMessage["headers"]; readonly body: unknown }[] = [];
  const left = [...statuses];
  const service: Server = createHttpServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    told.push({ headers: request.headers, body: JSON.parse(text) });
    response.writeHead(left.shift() ?? 200).end();
  }).listen(0, "127.0.0.1");
  await once(service, "listening");
  onTestFinished(() => {
    service.close();
    service.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(service.address() as AddressInfo).port}/parked`, told };
}

const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
const asking = () => answering([calling(callOf("1", "pay", { card: "4711 secret" })), "Paid."], [pay]);

test("a parked run is posted to a webhook, with retries, and without the questions", async () => {
  const { url, told } = await openService(500, 200);
  const webhook = { url, headers: { authorization: "Bearer w" } };
  const { client, sessionId } = await openRunServer({
    agents: { payer: asking() },
    init: { webhook, park: { afterMs: 0 } },
  });
  const run = await client.runs.start(sessionId, { input: "Pay." });
  const { questions } = await nextOf(client, run, "run-parked");
  await expect.poll(() => told.length).toBe(2);
  const [asked] = questions;
  expect(told[1]?.body).toEqual({
    type: "parked",
    sessionId,
    runId: run.runId,
    userId: "ann",
    questions: [{ question: asked?.question, callId: "1", name: "pay" }],
  });
  expect(told[1]?.headers).toMatchObject({ authorization: "Bearer w", "content-type": "application/json" });
  expect(JSON.stringify(told)).not.toContain("secret");
  await client.runs.approve(sessionId, asked?.question ?? "");
  await nextOf(client, run, "run-finished");
});

test("a webhook that never accepts is given up and reported, and the run still waits for its answer", async () => {
  const { url, told } = await openService(500, 500, 500, 500);
  const { client, sessionId, log } = await openRunServer({
    agents: { payer: asking() },
    init: { webhook: { url }, park: { afterMs: 0 } },
  });
  const run = await client.runs.start(sessionId, { input: "Pay." });
  const { questions } = await nextOf(client, run, "run-parked");
  await expect.poll(() => log.filter(({ level }) => level === "error").length).toBe(1);
  expect(log.find(({ level }) => level === "error")?.error).toContain("The webhook answered 500.");
  expect(told).toHaveLength(3);
  await client.runs.approve(sessionId, questions[0]?.question ?? "");
  await nextOf(client, run, "run-finished");
});

test.for(["nowhere", "file:///etc/passwd"])("a webhook that is no address of the web is refused: %s", async (url) => {
  const making = createServer({ store: openMemoryStore(), webhook: { url } });
  await expect(making).rejects.toMatchObject({ code: "INVALID_OPTION" });
});
