import { expect, onTestFinished, test } from "vitest";
import { createClient, type Fetch, type WireRunEvent } from "../../src/http/client/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { answering, type Gate, gate, pausing } from "./runs-agents.ts";
import { ANN, allOf, lasting, logOf, nextOf, openRunServer, type RunServer } from "./runs-server.ts";
import { tokenOf } from "./server-support.ts";

/** Starts this number of servers on one store, with agents of the same names, and creates a session of ann. */
async function openFleet(
  size: number,
  agents: () => NonNullable<Parameters<typeof openRunServer>[0]>["agents"],
  init: NonNullable<Parameters<typeof openRunServer>[0]>["init"] = {},
): Promise<{ readonly servers: readonly RunServer[]; readonly sessionId: string }> {
  const store = openMemoryStore();
  const { sessionId } = await new SessionManager({ store }).create({ userId: "ann" });
  const offer = () => ({ store, agents: agents() ?? {}, init: { recoverMs: 0, ...init } });
  const servers = await Promise.all(Array.from({ length: size }, () => openRunServer(offer())));
  return { servers, sessionId };
}

const paying = (paid: string[]) =>
  toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, { needsApproval: () => true });

test("a repeated request with the same id is the same run, on any server, immediately and after its end", async () => {
  const hold = gate();
  const { servers, sessionId } = await openFleet(5, () => ({ helper: answering([pausing(["a", "b"], hold)]) }));
  const ask = (server: RunServer, body: object, key?: string): Promise<Response> =>
    fetch(`${server.url}/api/sessions/${sessionId}/runs`, {
      method: "POST",
      headers: { ...ANN, "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
      body: JSON.stringify(body),
    });
  const at = (index: number): RunServer => servers[index % servers.length] as RunServer;
  const asked = await Promise.all(Array.from({ length: 10 }, (_, index) => ask(at(index), { input: "Hi." }, "mine")));
  expect(asked.map(({ status }) => status)).toEqual(Array(10).fill(202));
  expect(asked[0]?.headers.get("location")).toBe(`/api/sessions/${sessionId}/runs/mine`);
  const runs = (await Promise.all(asked.map((answer) => answer.json()))) as { runId: string; sessionId: string }[];
  expect(new Set(runs.map(({ runId }) => runId))).toEqual(new Set(["mine"]));
  expect(await (await ask(at(1), { input: "Hi.", runId: "mine" })).json()).toMatchObject({ status: "running" });
  const conflict = await ask(at(2), { input: "Something else." }, "mine");
  expect([conflict.status, await conflict.json()]).toEqual([409, expect.objectContaining({ code: "CONFLICT" })]);
  const both = await ask(at(2), { input: "Hi.", runId: "other" }, "mine");
  expect([both.status, await both.json()]).toEqual([400, expect.objectContaining({ code: "INVALID_REQUEST" })]);
  hold.open();
  await nextOf(at(3).client, { sessionId, runId: "mine" }, "run-finished");
  await at(4).manager.suspend(sessionId);
  expect(await (await ask(at(4), { input: "Hi." }, "mine")).json()).toMatchObject({ status: "finished" });
  expect(await logOf(at(0).store, sessionId)).toEqual(["user: Hi.", "started", "assistant: ab", "finished"]);
});

test("a client whose answer is lost asks again, and has the same run", async () => {
  const { servers, sessionId } = await openFleet(1, () => ({ helper: answering(["Once."]) }));
  const [{ url, client, store }] = servers as [RunServer];
  let lost = 0;
  const losing: Fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init.method === "POST" && lost++ < 2) throw new TypeError("The connection was reset.");
    return response;
  };
  const run = await createClient({ url, token: tokenOf("ann"), fetch: losing }).runs.start(sessionId, { input: "Hi." });
  await nextOf(client, run, "run-finished");
  expect(await client.runs.ofSession(sessionId)).toMatchObject([{ runId: run.runId, status: "finished" }]);
  expect(await logOf(store, sessionId)).toEqual(["user: Hi.", "started", "assistant: Once.", "finished"]);
});

test("a run that one server has is followed on a second, approved on a third and cancelled on a fourth", async () => {
  const paid: string[] = [];
  const { servers, sessionId } = await openFleet(4, () => ({
    payer: answering([calling(callOf("1", "pay")), pausing(["Paid", " all."], gate())], [paying(paid)]),
  }));
  const [one, two, three, four] = servers as [RunServer, RunServer, RunServer, RunServer];
  const run = await one.client.runs.start(sessionId, { input: "Pay." });
  const seen: WireRunEvent[] = [];
  for await (const event of two.client.runs.events(sessionId, run.runId)) {
    seen.push(event);
    if (event.type === "approval-required") {
      expect((await three.client.runs.get(sessionId, run.runId)).questions).toMatchObject([event.approval]);
      await three.client.runs.approve(sessionId, event.approval.question, { note: "Fine." });
    }
    if (event.type === "tool-finished") {
      await nextOf(one.client, run, "text-delta");
      await four.client.runs.steer(sessionId, "Hurry.");
      await four.client.runs.cancel(sessionId, run.runId, { reason: "Enough." });
    }
  }
  // These servers share a store and no queue: live events arrive on the first one only.
  expect(seen.map(({ type }) => type)).toEqual([
    ...["run-started", "round-finished", "approval-required", "tool-finished"],
    ...["events-dropped", "round-finished", "run-failed"],
  ]);
  expect(seen.at(-1)).toMatchObject({ error: { code: "ABORTED" } });
  expect(paid).toEqual(["1"]);
  for (const { client } of servers) {
    expect(await client.runs.get(sessionId, run.runId)).toMatchObject({ status: "cancelled", by: "ann" });
  }
});

test("a reader that changes servers after every event misses and repeats nothing that lasts", async () => {
  const { servers, sessionId } = await openFleet(3, () => ({
    helper: answering(
      [calling(callOf("1", "look"), callOf("2", "look")), calling(callOf("3", "look")), "Seen."],
      [toolOf("look")],
    ),
  }));
  const run = await (servers[0] as RunServer).client.runs.start(sessionId, { input: "Look." });
  const whole = lasting(await allOf((servers[0] as RunServer).client, run));
  const seen: WireRunEvent[] = [];
  let lastEventId: string | null = null;
  for (let turn = 1; ; turn++) {
    const { client } = servers[turn % 3] as RunServer;
    const events = client.runs.events(sessionId, run.runId, lastEventId === null ? {} : { lastEventId });
    const before = seen.length;
    for await (const event of events) if (lasting([event]).length > 0 && seen.push(event)) break;
    if (seen.length === before) break;
    ({ lastEventId } = events);
  }
  expect(seen).toEqual(whole);
  expect(whole).toHaveLength(8);
});

test("a reader is told that another process continues, and discards the live text of the lost round", async () => {
  const steps = [gate(), gate()] as const;
  const { servers, sessionId } = await openFleet(2, () => ({
    helper: answering([pausing(["half", "way"], steps[0])]),
  }));
  const [first, second] = servers as [RunServer, RunServer];
  const run = await first.client.runs.start(sessionId, { input: "Go." });
  const events = first.client.runs.events(sessionId, run.runId);
  for await (const event of events) if (event.type === "text-delta") break;
  await first.server.close({ drainMs: 0 });
  const { lastEventId } = events;
  await expect(second.client.runs.get(sessionId, run.runId)).resolves.toMatchObject({ status: "interrupted" });
  const rest: WireRunEvent[] = [];
  const reading = (async () => {
    const options = { lastEventId: lastEventId ?? "" };
    for await (const event of second.client.runs.events(sessionId, run.runId, options)) rest.push(event);
  })();
  await second.client.runs.recover(sessionId);
  await nextOf(second.client, run, "text-delta");
  steps[0].open();
  await reading;
  expect(rest.map(({ type }) => type).filter((type) => type !== "round-started")).toEqual([
    "run-started",
    "text-delta",
    "text-delta",
    "round-finished",
    "run-finished",
  ]);
  const starts = (await allOf(second.client, run)).filter(({ type }) => type === "run-started");
  expect(starts).toMatchObject([{ claim: 1 }, { claim: 2 }]);
});

test("a parked run holds nothing, is in its owner's inbox, and continues after an answer on a server that started later", async () => {
  const paid: string[] = [];
  const store = openMemoryStore();
  const { sessionId } = await new SessionManager({ store }).create({ userId: "ann" });
  const told: unknown[] = [];
  const init = { park: { afterMs: 0, expireMs: 3_600_000 }, onParked: (parked: unknown) => told.push(parked) };
  const asking = () => ({ payer: answering([calling(callOf("1", "pay", { euros: 5 }))], [paying(paid)]) });
  const first = await openRunServer({ store, agents: asking(), init });
  const run = await first.client.runs.start(sessionId, { input: "Pay." });
  const parked = await nextOf(first.client, run, "run-parked");
  const [asked] = parked.questions;
  expect(asked).toMatchObject({ callId: "1", name: "pay", arguments: { euros: 5 } });
  expect(await store.leaseOf(sessionId)).toBe(null);
  await first.server.close();
  expect(told).toEqual([{ sessionId, userId: "ann", runId: run.runId, questions: parked.questions }]);

  const agents = { payer: answering(["Paid."], [paying(paid)]) };
  const second = await openRunServer({ store, agents, init: { ...init, recoverMs: 60_000 } });
  const inbox = await second.client.runs.list({ state: "parked" });
  expect(inbox).toMatchObject({
    items: [
      {
        ...run,
        startedAt: expect.any(String),
        status: "parked",
        questions: [{ ...asked, expiresAt: parked.expiresAt }],
      },
    ],
    next: null,
  });
  expect((await second.as("bob").runs.list({ state: "parked" })).items).toEqual([]);
  expect((await second.as("root").runs.list({ state: "parked", userId: "bob" })).items).toEqual([]);
  expect((await second.as("root").runs.list({ state: "parked" })).items).toHaveLength(1);
  const listed = await second.client.sessions.list({ runs: "asking" });
  expect(listed.items.map(({ header }) => header.id)).toEqual([sessionId]);
  expect((await second.client.sessions.list({ runs: "running" })).items).toEqual([]);
  await expect(second.client.runs.start(sessionId, { input: "More." })).rejects.toMatchObject({
    code: "SESSION_BUSY",
    message: expect.stringContaining(asked?.question ?? "?"),
  });
  expect(paid).toEqual([]);
  const reading = allOf(second.client, run);
  await second.client.runs.approve(sessionId, asked?.question ?? "");
  expect(lasting(await reading).map(({ type }) => type)).toEqual([
    ...["run-started", "round-finished", "approval-required", "run-parked"],
    ...["run-started", "tool-finished", "round-finished", "run-finished"],
  ]);
  expect(paid).toEqual(["1"]);
});

test("a waiting run is cancelled in the queue, and closing a session drops its requests", async () => {
  const hold = gate();
  onTestFinished(() => hold.open());
  const { servers, sessionId } = await openFleet(2, () => ({
    helper: answering(Array(3).fill(pausing(["a", "b"], hold))),
  }));
  const [one, two] = servers as [RunServer, RunServer];
  const first = await one.client.runs.start(sessionId, { input: "One." });
  const second = await two.client.runs.start(sessionId, { input: "Two.", ifBusy: "enqueue" });
  const third = await two.client.runs.start(sessionId, { input: "Three.", ifBusy: "enqueue" });
  expect([second.status, third.status]).toEqual(["requested", "requested"]);
  expect(await one.client.runs.cancel(sessionId, second.runId)).toMatchObject({ status: "cancelled", startedAt: null });
  expect((await allOf(two.client, second)).map(({ type }) => type)).toEqual(["run-failed"]);
  await one.client.sessions.close(sessionId);
  expect(await two.client.runs.get(sessionId, third.runId)).toMatchObject({ status: "cancelled" });
  expect((await two.client.runs.ofSession(sessionId)).map(({ runId }) => runId)).toEqual([
    third.runId,
    second.runId,
    first.runId,
  ]);
});

test("a run begins at its time and not before, and is stopped at its deadline", async () => {
  const { servers, sessionId } = await openFleet(
    1,
    () => ({ helper: answering(["Now.", pausing(["a", "b"], gate() as Gate)]) }),
    { recoverMs: 20 },
  );
  const { client } = servers[0] as RunServer;
  const notBefore = new Date(Date.now() + 300).toISOString();
  const later = await client.runs.start(sessionId, { input: "Later.", notBefore });
  expect(later.status).toBe("requested");
  await nextOf(client, later, "run-finished");
  const view = await client.runs.get(sessionId, later.runId);
  expect((view.startedAt ?? "") >= notBefore).toBe(true);
  const deadline = new Date(Date.now() + 300).toISOString();
  const late = await client.runs.start(sessionId, { input: "Slowly.", deadline });
  expect((await allOf(client, late)).at(-1)).toMatchObject({ type: "run-failed", error: { code: "DEADLINE" } });
});
