import type { Message } from "@ag-ui/client";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { ModelError } from "../../src/agent/model/model-error.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { type ScriptedReply, scripted } from "../../src/models/index.ts";
import { requestIdOf } from "../../src/session/log/open-runs.ts";
import { answer, clientOf, plain, say, shown } from "./ag-ui-client.ts";
import { call, calls, clerk } from "./clerk.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { logOf, openRunServer } from "./runs-server.ts";

test("a client that reconnects during an answer gets every word once: under the same run, under another, and without a run id", async () => {
  const pause = gate();
  const helper = clerk(calls(call("look")), pausing(["One ", "two ", "three."], pause));
  const server = await openRunServer({ agents: { helper } });
  const { sessionId } = server;
  const first = clientOf(server, sessionId);
  first.agent.addMessage({ id: "m1", role: "user", content: "Count." });
  const dropped = first.agent.runAgent({ runId: "r1" }).catch((error: unknown) => error);
  await expect.poll(() => shown(first.agent.messages).at(-1)).toBe("assistant: One two ");
  const said: Message[] = [{ id: "m1", role: "user", content: "Count." }];
  const others = [clientOf(server, sessionId, { messages: said }), clientOf(server, sessionId)];
  const reading = [
    others[0]?.agent.runAgent({ runId: "r1" }),
    others[1]?.agent.runAgent(),
    // A clone has the partial answer of its original.
    first.agent.clone().runAgent({ runId: "r2" }),
  ];
  for (const { agent } of others) await expect.poll(() => shown(agent.messages).at(-1)).toBe("assistant: One two ");
  // Drops the connection, as a reload does.
  first.agent.abortRun();
  await dropped;
  const back = first.agent.runAgent({ runId: "r3" });
  await expect.poll(() => first.told.filter(({ type }) => type === "MESSAGES_SNAPSHOT").length).toBe(2);
  pause.open();
  await Promise.all([...reading, back]);
  const late = clientOf(server, sessionId);
  await late.agent.runAgent();
  for (const { agent, told } of [...others, first, late]) {
    expect(shown(agent.messages)).toEqual([
      ...["user: Count.", "reasoning: Which tool?", "assistant: [look {}]", 'tool: {"seen":"all"}'],
      "assistant: One two three.",
    ]);
    expect(plain(agent.messages)).toEqual(plain(late.agent.messages));
    expect(told.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  }
  expect((await logOf(server.store, sessionId)).filter((line) => line === "finished")).toHaveLength(1);
});

test("live deltas that a snapshot already contains are not sent again, also if the log is read in several chunks", async () => {
  const [talking, looking] = [gate(), gate()];
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: { type: "object" },
    execute: () => looking.opened.then(() => "waited"),
  });
  const replies: ScriptedReply[] = [
    async function* () {
      yield { type: "text-delta", text: "One " };
      await talking.opened;
      yield { type: "tool-call-delta", index: 0, id: "w", name: "wait", arguments: "{}" };
      yield { type: "finish", stopReason: "tool_calls" };
    },
    "Two.",
  ];
  const server = await openRunServer({ agents: { helper: answering(replies, [wait]) } });
  const { store, sessionId } = server;
  const first = clientOf(server, sessionId);
  const reading = say(first.agent, "Count.", "m1");
  await expect.poll(() => shown(first.agent.messages).at(-1)).toBe("assistant: One ");
  // A reader of the log reads 64 entries at a time: with these, the answer is the first of the next chunk.
  const asked = await store.getEntry(sessionId, requestIdOf("m1"));
  const between = 64 - (((await store.head(sessionId))?.version ?? 0) - (asked?.seq ?? 0));
  const entries = Array.from({ length: between }, () => ({ type: "custom", customType: "note" }) as const);
  await server.client.sessions.append(sessionId, { entries });
  talking.open();
  await expect.poll(() => shown(first.agent.messages).at(-1)).toBe("assistant: One [wait {}]");
  const second = clientOf(server, sessionId);
  const joining = second.agent.runAgent();
  await expect.poll(() => shown(second.agent.messages).length).toBe(2);
  looking.open();
  await Promise.all([reading, joining]);
  const said = ["user: Count.", "assistant: One [wait {}]", "tool: waited", "assistant: Two."];
  for (const { agent } of [first, second]) expect(shown(agent.messages)).toEqual(said);
});

test("a run continues when its reader disconnects, unless cancelWhenLeft is set and no reader reconnects in time", async () => {
  for (const [init, end] of [
    [{}, "finished"],
    [{ cancelWhenLeft: { afterMs: 50 } }, "cancelled"],
  ] as const) {
    const pause = gate();
    const server = await openRunServer({ agents: { helper: clerk(pausing(["One ", "two."], pause)) }, init });
    const { agent, told } = clientOf(server, server.sessionId);
    agent.addMessage({ id: "m1", role: "user", content: "Count." });
    const reading = agent.runAgent().catch(() => {});
    await expect.poll(() => shown(agent.messages).at(-1)).toBe("assistant: One ");
    await agent.detachActiveRun();
    agent.abortRun();
    await reading;
    if (end === "finished") pause.open();
    await expect.poll(() => logOf(server.store, server.sessionId)).toContain(end);
    // A repeated request gets the end of the run.
    agent.setMessages([{ id: "m1", role: "user", content: "Count." }]);
    await agent.runAgent();
    const outcome = end === "finished" ? "success" : "cancelled";
    expect(told.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: outcome } });
  }
});

test("a reader that answered and disconnected counts as disconnected, even if another stream of the run has ended", async () => {
  const never = gate();
  const helper = clerk(calls(call("pay")), pausing(["One ", "two."], never));
  const server = await openRunServer({ agents: { helper }, init: { cancelWhenLeft: { afterMs: 50 } } });
  const { agent } = clientOf(server, server.sessionId);
  await say(agent, "Pay.");
  const reading = agent.runAgent(answer(agent, { approved: true })).catch(() => {});
  await expect.poll(() => shown(agent.messages).at(-1)).toBe("assistant: One ");
  agent.abortRun();
  await reading;
  await expect.poll(() => logOf(server.store, server.sessionId)).toContain("cancelled");
});

test("the partial answer before a retry of the model is withdrawn, and the new answer is streamed", async () => {
  const [first, second] = [gate(), gate()];
  const model = scripted([
    async function* () {
      yield { type: "text-delta", text: "Wrong " };
      await first.opened;
      throw new ModelError("overloaded", "Too busy.", { provider: "sample", retryAfterMs: 1 });
    },
    pausing(["Right ", "words."], second),
  ]);
  const helper = createAgent({ prompt: "Talk.", model, builtInTools: false, retry: { baseDelayMs: 0 } });
  const server = await openRunServer({ agents: { helper } });
  const { agent } = clientOf(server, server.sessionId);
  agent.addMessage({ id: "m1", role: "user", content: "Hi." });
  const reading = agent.runAgent();
  await expect.poll(() => shown(agent.messages).at(-1)).toBe("assistant: Wrong ");
  first.open();
  await expect.poll(() => shown(agent.messages).at(-1)).toBe("assistant: Right ");
  second.open();
  await reading;
  expect(shown(agent.messages)).toEqual(["user: Hi.", "assistant: Right words."]);
});

test("the output of a run is the result for a client that reads the run to its end", async () => {
  const pause = gate();
  const server = await openRunServer({ agents: { helper: clerk(pausing(['{"prime":', "97}"], pause)) } });
  const { client, sessionId } = server;
  const output = { type: "object", properties: { prime: { type: "integer" } }, required: ["prime"] };
  await client.runs.start(sessionId, { input: "Name a prime.", output });
  const { agent, told } = clientOf(server, sessionId);
  const joining = agent.runAgent();
  await expect.poll(() => told.length).toBeGreaterThan(0);
  pause.open();
  expect((await joining).result).toEqual({ prime: 97 });
});

test("a client that reconnects to a fork whose question belongs to the source gets the messages and can continue", async () => {
  const server = await openRunServer({ agents: { helper: clerk("One.", "Two.") } });
  await say(clientOf(server, server.sessionId).agent, "Count.", "m1");
  const { sessionId: fork } = await server.manager.fork(server.sessionId, "other");
  const { agent, told } = clientOf(server, fork, { messages: [{ id: "m1", role: "user", content: "Count." }] });
  await agent.runAgent();
  expect(told.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  expect(shown(agent.messages)).toEqual(["user: Count.", "assistant: One."]);
  await say(agent, "On.");
  expect(shown(agent.messages).slice(2)).toEqual(["user: On.", "assistant: Two."]);
});
