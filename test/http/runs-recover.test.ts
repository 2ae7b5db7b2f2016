import { expect, test } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import type { Model } from "../../src/agent/model/model.ts";
import type { LogOpener } from "../../src/agent/persist/persist-option.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import type { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/index.ts";
import { callOf, calling, saying, toolOf } from "../sample-run.ts";
import { answering, type Gate, gate, pausing } from "./runs-agents.ts";
import { ANN, allOf, logOf, nextOf, openRunServer, type RunServer } from "./runs-server.ts";

/** Shuts a server down while its run cannot end. */
const shutDown = ({ server }: RunServer): Promise<void> => server.close({ drainMs: 0 });

/** A model of another name than the agents' own. */
const other = (...replies: Parameters<typeof scripted>[0]): Model => ({
  ...scripted(replies),
  provider: "other",
  id: "one",
});

test("a run that waits for approval when its server shuts down parks, and continues under its id on the next server after the answer", async () => {
  const pay = toolOf("pay", (_args, { callId }) => `paid ${callId}`, { needsApproval: () => true });
  const asking = answering([calling(callOf("1", "pay"))], [pay]);
  const first = await openRunServer({ agents: { other: answering([]), payer: asking } });
  const { store, sessionId } = first;
  const run = await first.client.runs.start(sessionId, { input: "Pay.", agent: "payer" });
  const { question } = (await nextOf(first.client, run, "approval-required")).approval;
  await first.server.close();

  const agents = { other: answering([]), payer: answering(["Paid."], [pay]) };
  const second = await openRunServer({ store, agents, init: { recoverMs: 0 } });
  expect(await second.client.runs.get(sessionId, run.runId)).toMatchObject({
    status: "parked",
    agent: "payer",
    questions: [{ question, callId: "1" }],
  });
  expect(await second.client.runs.recover(sessionId)).toBe(null);
  await second.client.runs.approve(sessionId, question);
  await nextOf(second.client, run, "run-finished");
  expect((await logOf(store, sessionId)).slice(-4)).toEqual([
    "started",
    "tool: paid 1",
    "assistant: Paid.",
    "finished",
  ]);
  expect(await second.client.runs.recover(sessionId)).toBe(null);
});

test("a server that starts continues requested runs by itself, with the requested model", async () => {
  const first = await openRunServer({
    agents: { helper: answering([]) },
    models: [other(pausing(["half", "whole"], gate()))],
  });
  const { store, sessionId } = first;
  const run = await first.client.runs.start(sessionId, { input: "Hi.", model: "other/one" });
  await nextOf(first.client, run, "text-delta");
  await shutDown(first);
  const models = [other(saying("From the other."))];
  const second = await openRunServer({ store, agents: { helper: answering([]) }, models });
  await nextOf(second.client, run, "run-finished");
  expect((await logOf(store, sessionId)).at(-2)).toBe("assistant: From the other.");
  expect(await second.client.runs.get(sessionId, run.runId)).toMatchObject({ model: "other/one", by: "ann" });
});

test("a run without a request belongs to another program: a server continues it only when asked to", async () => {
  const { client, store, sessionId } = await openRunServer({ agents: { helper: answering(["Here."]) } });
  await store.append(sessionId, [
    { type: "message", message: { role: "user", content: "Hi." } },
    { type: "run", runId: "mine", phase: "started", claim: 1, agent: "helper" },
  ]);
  const another = await openRunServer({ store, agents: { helper: answering(["There."]) }, init: { recoverMs: 20 } });
  // Requested later and found first: by then the other one was checked, too.
  const { sessionId: later } = await another.manager.create({ userId: "ann" });
  const { runId } = await another.manager.request(later, { input: "Hi.", agent: "helper" });
  await nextOf(another.client, { sessionId: later, runId }, "run-finished");
  const { items } = await another.client.runs.list({ state: "interrupted" });
  expect(items).toMatchObject([{ runId: "mine", by: null }]);
  expect(await client.runs.recover(sessionId)).toMatchObject({ runId: "mine", requestedAt: null });
  await nextOf(client, { sessionId, runId: "mine" }, "run-finished");
  expect((await logOf(store, sessionId)).slice(-2)).toEqual(["assistant: Here.", "finished"]);
});

test("an interrupted group continues where it stopped, and not from its beginning", async () => {
  const crew = (last: Parameters<typeof answering>[0]) => (manager: SessionManager) => {
    const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
    return { crew: group.addAgent(answering(["A plan."], [], "planner")).addAgent(answering(last, [], "critic")) };
  };
  const first = await openRunServer({ groups: crew([pausing(["Hm", "."], gate())]) });
  const { store, sessionId } = first;
  const run = await first.client.runs.start(sessionId, { input: "What now?", group: "crew" });
  for await (const event of first.client.runs.events(sessionId, run.runId)) {
    if (event.type === "text-delta" && "agent" in event && event.agent === "critic") break;
  }
  await shutDown(first);
  const second = await openRunServer({ store, groups: crew(["Agreed."]), agents: { helper: answering([]) } });
  const events = await allOf(second.client, run);
  expect(await second.client.runs.get(sessionId, run.runId)).toMatchObject({ agent: null, group: "crew" });
  expect(events.filter(({ type }) => type === "group-started")).toMatchObject([{ resumed: false }, { resumed: true }]);
  expect(events.at(-1)).toMatchObject({ type: "group-finished", outcome: { reason: "complete" } });
  const log = await logOf(store, sessionId);
  expect(log.filter((line) => line === "assistant: A plan.")).toHaveLength(1);
  expect(log.slice(-2)).toEqual(["assistant: Agreed.", "finished"]);
});

test("a session without an interrupted run has nothing to recover, and one with a running run is busy", async () => {
  const hold = gate();
  const { client, sessionId } = await openRunServer({ agents: { slow: answering([pausing(["a", "b"], hold)]) } });
  expect(await client.runs.recover(sessionId)).toBe(null);
  const run = await client.runs.start(sessionId, { input: "Slowly." });
  await nextOf(client, run, "text-delta");
  await expect(client.runs.recover(sessionId)).rejects.toMatchObject({ code: "SESSION_BUSY", status: 409 });
  expect((await client.sessions.get(sessionId)).running).toEqual({ runId: run.runId });
  hold.open();
  await nextOf(client, run, "run-finished");
  expect(await client.runs.recover(sessionId)).toBe(null);
});

test("of ten concurrent recoveries of a session, one continues the run, and the others are refused", async () => {
  const first = await openRunServer({ agents: { slow: answering([pausing(["a", "b"], gate())]) } });
  const { store, sessionId } = first;
  const run = await first.client.runs.start(sessionId, { input: "Slowly." });
  await nextOf(first.client, run, "text-delta");
  await shutDown(first);
  const hold = gate();
  const agents = { slow: answering(Array(10).fill(pausing(["c", "d"], hold))) };
  const second = await openRunServer({ store, agents, init: { recoverMs: 0 } });
  const tries = Array.from({ length: 10 }, () => second.client.runs.recover(sessionId));
  const found = await Promise.allSettled(tries);
  const taken = found.map((one) => (one.status === "rejected" ? one.reason.code : (one.value?.runId ?? "nothing")));
  expect(taken).toContain(run.runId);
  expect(taken.filter((one) => !["SESSION_BUSY", "nothing", run.runId].includes(one))).toEqual([]);
  hold.open();
  await nextOf(second.client, run, "run-finished");
  expect((await logOf(store, sessionId)).filter((line) => line === "assistant: cd")).toHaveLength(1);
});

test("a server that shuts down does not stop runs of others in its process", async () => {
  const hold = gate();
  const own = answering([pausing(["a", "b"], hold)]).run("Slowly.");
  const first = await openRunServer({ agents: { slow: answering([pausing(["a", "b"], gate())]) } });
  const run = await first.client.runs.start(first.sessionId, { input: "Slowly." });
  await nextOf(first.client, run, "text-delta");
  await shutDown(first);
  expect(own.pending).toBe(true);
  hold.open();
  expect((await own).text()).toContain("ab");
});

test("a server that shuts down ends its streams, starts no run, and waits for runs that end in time", async () => {
  const hold = gate();
  const { client, sessionId, server, url, store } = await openRunServer({
    agents: { slow: answering([pausing(["a", "b"], hold)]) },
  });
  const run = await client.runs.start(sessionId, { input: "Slowly." });
  const events = await fetch(`${url}/api/sessions/${sessionId}/runs/${run.runId}/events`, { headers: ANN });
  const watch = await fetch(`${url}/api/sessions/${sessionId}/watch`, { headers: ANN });
  const closing = server.close();
  expect(await events.text()).not.toContain("run-finished");
  await watch.text();
  // The port is closed already; an open connection still gets an answer.
  const start = await server.fetch(
    new Request(`${url}/api/sessions/${sessionId}/runs`, {
      method: "POST",
      headers: { ...ANN, "content-type": "application/json" },
      body: JSON.stringify({ input: "No.", ifBusy: "enqueue" }),
    }),
  );
  expect([start.status, await start.json()]).toEqual([503, expect.objectContaining({ code: "DRAINING" })]);
  const late = await server.fetch(
    new Request(`${url}/api/sessions/${sessionId}/runs/${run.runId}/events`, { headers: ANN }),
  );
  expect(late.status).toBe(503);
  hold.open();
  await closing;
  expect(await logOf(store, sessionId)).toEqual(["user: Slowly.", "started", "assistant: ab", "finished"]);
});

test("a fork made in the middle of a run has nothing to continue, and the run's call stays with the run", async () => {
  const held = gate();
  let paid = 0;
  const pay = toolOf("pay", async () => {
    paid += 1;
    await held.opened;
    return "paid";
  });
  const { client, store, sessionId } = await openRunServer({
    agents: { payer: answering([calling(callOf("1", "pay")), "Paid."], [pay]) },
  });
  const run = await client.runs.start(sessionId, { input: "Pay." });
  await nextOf(client, run, "tool-started");
  const fork = await client.sessions.fork(sessionId, { branchName: "meanwhile" });
  expect(fork).toMatchObject({ openRuns: [], running: null });
  expect(await client.runs.recover(fork.header.id)).toBe(null);
  held.open();
  await nextOf(client, run, "run-finished");
  expect([paid, (await logOf(store, sessionId)).at(-2)]).toEqual([1, "assistant: Paid."]);
});

/** The same agent. Its runs report that they are about to claim their session, and claim it once the gate is open. */
function heldBack(agent: Agent, wants: Gate, held: Gate): Agent {
  const run: Agent["run"] = (input, options = {}) => {
    const { openLog } = options.persist as LogOpener;
    const later: LogOpener["openLog"] = async (request) => {
      wants.open();
      await held.opened;
      return openLog(request);
    };
    return agent.run(input, { ...options, persist: { openLog: later } });
  };
  return { ...agent, run };
}

test("of two workers that find the same interrupted run, one continues it, and the other finds nothing to do", async () => {
  let paid = 0;
  const pay = toolOf("pay", () => `paid ${++paid}`, { idempotent: true });
  const first = await openRunServer({
    agents: { payer: answering([calling(callOf("1", "pay")), pausing(["…"], gate())], [pay]) },
  });
  const { store, sessionId } = first;
  const run = await first.client.runs.start(sessionId, { input: "Pay." });
  await nextOf(first.client, run, "tool-finished");
  await shutDown(first);
  const [before, wants, held] = [paid, gate(), gate()];
  const agent = answering([calling(callOf("2", "pay")), "Paid again."], [pay]);
  const init = { recoverMs: 0 };
  const slow = await openRunServer({ store, agents: { payer: heldBack(agent, wants, held) }, init });
  const quick = await openRunServer({ store, agents: { payer: answering(["Paid."], [pay]) }, init });
  await slow.client.runs.recover(sessionId);
  await wants.opened;
  expect(await quick.client.runs.recover(sessionId)).toMatchObject({ runId: run.runId });
  await nextOf(quick.client, run, "run-finished");
  held.open();
  // Whatever the slow worker still does is done when it is closed.
  await slow.server.close();
  expect(paid).toBe(before);
  expect((await logOf(store, sessionId)).slice(-3)).toEqual(["started", "assistant: Paid.", "finished"]);
});
