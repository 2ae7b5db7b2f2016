import { expect, test } from "vitest";
import type { Approval } from "../../src/session/log/run-event.ts";
import type { Agent } from "../../src/agent/agent.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import type { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { allOf, logOf, nextOf, openRunServer } from "./runs-server.ts";

const crew =
  (...agents: readonly Agent[]) =>
  (manager: SessionManager) => {
    const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
    for (const agent of agents) group.addAgent(agent);
    return { crew: group };
  };

test("a group answers, and its events end with the group and not with its first agent", async () => {
  const hold = gate();
  const groups = crew(answering(["A plan."], [], "planner"), answering([pausing(["Agreed", "."], hold)], [], "critic"));
  const { client, store, sessionId } = await openRunServer({ groups });
  const run = await client.runs.start(sessionId, { input: "What now?", group: "crew" });
  expect(run).toMatchObject({ agent: null, group: "crew" });
  const reading = allOf(client, run);
  await nextOf(client, run, "text-delta").then(hold.open);
  const events = await reading;
  expect(events[0]).toMatchObject({ type: "group-started", agents: ["planner", "critic"] });
  expect(events.at(-1)).toMatchObject({ type: "group-finished", outcome: { reason: "complete" } });
  expect(events.filter(({ type }) => type === "run-finished")).toHaveLength(2);
  expect(await logOf(store, sessionId)).toEqual([
    "user: What now?",
    "started",
    "assistant: A plan.",
    "assistant: Agreed.",
    "finished",
  ]);
  expect(await client.runs.get(sessionId, run.runId)).toMatchObject({ status: "finished" });
});

test("a call of an agent in a group waits for approval like any other", async () => {
  const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
  const groups = crew(answering([calling(callOf("1", "pay")), "Paid."], [pay], "payer"));
  const { client, sessionId } = await openRunServer({ groups });
  const run = await client.runs.start(sessionId, { input: "Pay.", group: "crew" });
  const { approval, agent } = (await nextOf(client, run, "approval-required")) as {
    approval: Approval;
    agent?: string;
  };
  expect(agent).toBe("payer");
  const [asked, another] = (await client.runs.get(sessionId, run.runId)).questions;
  expect(asked).toMatchObject({ question: approval.question, callId: "1", name: "pay", arguments: {}, reach: null });
  expect(another).toBe(undefined);
  expect((await client.runs.approve(sessionId, approval.question)).questions).toEqual([]);
  expect(await nextOf(client, run, "group-finished")).toMatchObject({ outcome: { reason: "complete" } });
});

test("an agent that fails ends the group's run, with an error that reveals nothing internal", async () => {
  const groups = crew(answering([new Error("The key sk-123 is wrong.")], [], "planner"));
  const { client, sessionId } = await openRunServer({ groups });
  const run = await client.runs.start(sessionId, { input: "Go.", group: "crew" });
  const events = await allOf(client, run);
  expect(events.at(-1)).toMatchObject({ outcome: { reason: "agent-failed", error: { code: "INTERNAL" } } });
  const view = await client.runs.get(sessionId, run.runId);
  expect(view).toMatchObject({ status: "failed", problem: { code: "INTERNAL" } });
  expect(JSON.stringify([events, view])).not.toContain("sk-123");
});

test("groups and agents share a session as agents do: refused, or one in the other's place", async () => {
  const groups = crew(answering([pausing(["slow", "ly"], gate()), "again"], [], "planner"));
  const { client, store, sessionId } = await openRunServer({ groups, agents: { quick: answering(["quick"]) } });
  const group = await client.runs.start(sessionId, { input: "Group.", group: "crew" });
  await nextOf(client, group, "text-delta");
  await expect(client.runs.start(sessionId, { input: "No." })).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(client.runs.start(sessionId, { input: "No.", group: "crew" })).rejects.toMatchObject({
    code: "SESSION_BUSY",
  });
  await expect(client.runs.steer(sessionId, "Psst.")).rejects.toMatchObject({ code: "INVALID_OPTION", status: 400 });
  const agent = await client.runs.start(sessionId, { input: "Agent.", ifBusy: "interrupt" });
  await nextOf(client, agent, "run-finished");
  expect(await client.runs.get(sessionId, group.runId)).toMatchObject({ status: "cancelled" });
  const log = await logOf(store, sessionId);
  expect(log.indexOf("cancelled")).toBeLessThan(log.indexOf("user: Agent."));
  expect(log.slice(-3)).toEqual(["started", "assistant: quick", "finished"]);
});
