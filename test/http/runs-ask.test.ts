import { expect, test } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import type { AskPolicy } from "../../src/agent/tools/ask-policy.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import type { Client } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { scripted } from "../../src/models/index.ts";
import { registerSandboxBackend } from "../../src/session/sandbox/sandbox-backends.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { nextOf, openRunServer, type RunName } from "./runs-server.ts";

const TOOLS = [
  toolOf("look", () => "done", { effects: "reads" }),
  toolOf("write", () => "done", { effects: "writes" }),
  toolOf("run", () => "done", { sandboxed: true }),
  toolOf("foreign", () => "done", { untrusted: true }),
];

function working(ask?: AskPolicy): Agent {
  const model = scripted([calling(...TOOLS.map(({ schema: { name } }) => callOf(name, name))), "Done."]);
  return createAgent({
    name: "worker",
    prompt: "",
    model,
    tools: TOOLS,
    builtInTools: false,
    ...(ask && { ask }),
  });
}

/** The questions of a run; everything is denied. */
async function askedIn(client: Client, { sessionId, runId }: RunName): Promise<string[]> {
  const asked: string[] = [];
  for await (const event of client.runs.events(sessionId, runId)) {
    if (event.type !== "approval-required") continue;
    asked.push(event.approval.name);
    await client.runs.deny(sessionId, event.approval.question);
  }
  return asked;
}

const expected: [server: AskPolicy | undefined, agent: AskPolicy | undefined, asked: string[]][] = [
  [undefined, undefined, ["foreign"]],
  ["writes", undefined, ["write", "run", "foreign"]],
  ["writes", "never", ["write", "run", "foreign"]],
  ["never", "writes", ["write", "run", "foreign"]],
  ["never", undefined, []],
  [undefined, "always", ["look", "write", "run", "foreign"]],
];
test.for(expected)(
  "of a server with %s and an agent with %s the stricter policy applies, in groups too",
  async ([server, own, asked]) => {
    const { client, sessionId, manager } = await openRunServer({
      agents: { worker: working(own) },
      groups: (of) => ({
        crew: new GroupSession({ manager: of, turnManager: new RoundRobinTurnManager(1) }).addAgent(working(own)),
      }),
      ...(server && { ask: server }),
    });
    const alone = await client.runs.start(sessionId, { input: "Go." });
    expect(await askedIn(client, alone)).toEqual(asked);
    const second = (await manager.create({ userId: "ann" })).sessionId;
    const together = await client.runs.start(second, { input: "Go.", group: "crew" });
    expect(await askedIn(client, together)).toEqual(asked);
  },
);

test("a question over HTTP shows what the call can do and reach, and its answer lets the call run", async () => {
  registerSandboxBackend("told", () => ({
    reach: async ({ workingDir = null }) => ({ directory: workingDir, isolated: true, network: false }),
    open: () => Promise.reject(new Error("Nothing is opened for a question.")),
  }));
  const model = scripted([calling(callOf("1", "run", { command: "ls" })), "Done."]);
  const agent = createAgent({ name: "worker", prompt: "", model, tools: TOOLS, builtInTools: false });
  const place = { backend: "told", spec: "/srv/work" };
  const { client, sessionId } = await openRunServer({ agents: { worker: agent }, place, ask: "writes" });
  const run = await client.runs.start(sessionId, { input: "Go." });
  const approval = {
    question: expect.any(String),
    callId: "1",
    name: "run",
    arguments: { command: "ls" },
    effects: "commands",
    reach: { directory: "/srv/work", isolated: true, network: false },
  };
  const { question } = (await nextOf(client, run, "approval-required")).approval;
  const [asked] = (await client.runs.get(sessionId, run.runId)).questions;
  expect(asked).toEqual({ ...approval, question, askedAt: expect.any(String) });
  await client.runs.approve(sessionId, question);
  expect(await nextOf(client, run, "tool-finished")).toMatchObject({ message: { content: "done" } });
});

test("a question of a run inside of a tool is asked and answered in the run that the client knows", async () => {
  const helper = createAgent({
    prompt: "",
    model: scripted([calling(callOf("1", "run")), "Ran it."]),
    tools: TOOLS,
    builtInTools: false,
  });
  const ask = toolOf("ask", async () => (await helper.run("Go.")).text(), { effects: "reads" });
  const agent = createAgent({
    name: "worker",
    prompt: "",
    model: scripted([calling(callOf("1", "ask")), "Done."]),
    tools: [ask],
    builtInTools: false,
  });
  const { client, sessionId } = await openRunServer({ agents: { worker: agent }, ask: "writes" });
  const run = await client.runs.start(sessionId, { input: "Go." });
  const { approval } = await nextOf(client, run, "approval-required");
  expect(approval).toMatchObject({ name: "run", innerRunId: expect.any(String) });
  await client.runs.approve(sessionId, approval.question);
  expect(await nextOf(client, run, "tool-finished")).toMatchObject({ message: { content: "Ran it." } });
});

test("a server accepts only the documented values of ask", async () => {
  const starting = createServer({ store: openMemoryStore(), ask: "some" as AskPolicy });
  await expect(starting).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining("ask") });
});
