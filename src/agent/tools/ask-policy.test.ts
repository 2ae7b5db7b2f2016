import { describe, expect, test } from "vitest";
import { asking, callOf, calling, nextEvent, resultsOf, someAgent, toolOf } from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { SandboxBackend, SandboxReach } from "../../session/sandbox/sandbox.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { drainRuns } from "../active-runs.ts";
import { createAgent } from "../agent.ts";
import { streamingExecutor } from "../model/loop-executor.ts";
import { resumeSession } from "../persist/resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { SessionRun } from "../session-run.ts";
import type { Tool } from "./tool.ts";
import { ASK_POLICIES, type AskPolicy } from "./ask-policy.ts";

const TOOLS: readonly Tool[] = [
  toolOf("look", () => "done", { effects: "reads" }),
  toolOf("write", () => "done", { effects: "writes" }),
  toolOf("run", () => "done", { effects: "commands" }),
  toolOf("undeclared"),
  toolOf("odd", () => "done", { effects: "read" as "reads" }),
  toolOf("careful", () => "done", { effects: "reads", needsApproval: () => true }),
  toolOf("foreign", () => "done", { effects: "reads", untrusted: true }),
];

/** Denies everything that a run asks, and records the questions. */
async function askedBy(run: SessionRun): Promise<string[]> {
  const asked: string[] = [];
  for await (const event of run) {
    if (event.type !== "approval-required") continue;
    asked.push(event.approval.name);
    await run.deny(event.approval.callId);
  }
  const results = resultsOf((await run).transcript);
  expect(results.filter((result) => result === "done")).toHaveLength(results.length - asked.length);
  return asked;
}

function callingAll(tools: readonly Tool[]): ReturnType<typeof scripted> {
  return scripted([calling(...tools.map(({ schema: { name } }) => callOf(name, name))), "Done."]);
}

describe("which calls need approval", () => {
  const expected: [ask: AskPolicy | undefined, asked: string[]][] = [
    ["always", ["look", "write", "run", "undeclared", "odd", "careful", "foreign"]],
    ["writes", ["write", "run", "undeclared", "odd", "careful", "foreign"]],
    ["commands", ["run", "undeclared", "odd", "careful", "foreign"]],
    ["never", ["careful"]],
    [undefined, ["careful", "foreign"]],
  ];
  test.for(expected)("with the value %s for these calls: %j", async ([ask, asked]) => {
    const options = { model: callingAll(TOOLS), tools: TOOLS, ...(ask && { ask }) };
    expect(await askedBy(runSessionLoop(asking(), someAgent(), options))).toEqual(asked);
  });

  test("is refused if it is not a valid value, by a run and by an agent", () => {
    const model = scripted(["Done."]);
    for (const ask of ["none", "read", "", null, 3] as unknown as AskPolicy[]) {
      const refusal = expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringContaining("ask is"),
      });
      expect(() => runSessionLoop(asking(), someAgent(), { model, ask })).toThrow(refusal);
      expect(() => createAgent({ prompt: "", model, ask })).toThrow(refusal);
      expect(() => createAgent({ prompt: "", model }).run("x", { ask })).toThrow(refusal);
    }
  });

  test("is the stricter one of an agent's and a run's", async () => {
    const [reads, all] = [["write", "run", "undeclared", "odd", "careful", "foreign"], ["careful"]];
    const askedWith = (own: AskPolicy | undefined, given: AskPolicy | undefined): Promise<string[]> => {
      const agent = createAgent({ prompt: "", model: callingAll(TOOLS), tools: TOOLS, ...(own && { ask: own }) });
      return askedBy(agent.run("Go.", given && { ask: given }));
    };
    expect(await askedWith("writes", "never")).toEqual(reads);
    expect(await askedWith("never", "writes")).toEqual(reads);
    expect(await askedWith("writes", undefined)).toEqual(reads);
    expect(await askedWith(undefined, "writes")).toEqual(reads);
    expect(await askedWith(undefined, "never")).toEqual(all);
  });

  test("is asked before an executor gets a call, also for tools that only the executor has", async () => {
    const dispatched: string[] = [];
    const schema = { name: "hidden", description: "Does it.", parameters: { type: "object" } };
    const executor = streamingExecutor(scripted([calling(callOf("1", "hidden"))]), () => {}, {
      toolSchemas: () => [schema],
      dispatchTool: (_session, tool) => dispatched.push(tool.schema.name),
    });
    const run = runSessionLoop(asking(), someAgent(), { executor, ask: "commands", maxToolRounds: 1 });
    const { approval } = await nextEvent(run, "approval-required");
    expect([approval.effects, approval.reach, dispatched]).toEqual(["commands", null, []]);
    run.abort();
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
    expect(dispatched).toEqual([]);
  });
});

describe("a run that a tool starts", () => {
  const ran: string[] = [];
  const shell = toolOf("shell", (_args, { callId }) => ran.push(callId), { effects: "commands" });
  const inner = (): Tool =>
    toolOf(
      "ask_helper",
      async () => {
        const helper = createAgent({
          prompt: "",
          model: scripted([calling(callOf("1", "shell")), "Ran it."]),
          tools: [shell],
        });
        return (await helper.run("Go.")).text();
      },
      { effects: "reads" },
    );
  const outer = (tool: Tool, ask?: AskPolicy): SessionRun =>
    runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("1", "ask_helper")), "Done."]),
      tools: [tool],
      ...(ask && { ask }),
    });

  test("is never less strict than the enclosing run, which asks and passes on the answer", async () => {
    ran.length = 0;
    const run = outer(inner(), "writes");
    const { approval } = await nextEvent(run, "approval-required");
    expect(approval).toMatchObject({ name: "shell", effects: "commands", callId: "1", innerRunId: expect.any(String) });
    expect(run.pendingApprovals).toEqual([approval]);
    expect(ran).toEqual([]);
    await run.approve(approval.question);
    expect(await nextEvent(run, "approval-settled")).toMatchObject({ question: approval.question });
    expect(resultsOf((await run).transcript)).toEqual(["Ran it."]);
    expect(ran).toEqual(["1"]);
    await expect(run.approve(approval.callId)).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("asks through any number of enclosing runs, and a denied call does not run", async () => {
    ran.length = 0;
    const middle = toolOf("ask_helper", async () => (await outer(inner())).text(), { effects: "reads" });
    const run = outer(middle, "writes");
    const { approval } = await nextEvent(run, "approval-required");
    await run.deny(approval.question, "No.");
    await run;
    expect([ran, run.pendingApprovals]).toEqual([[], []]);
  });

  test("that is abandoned withdraws its question", async () => {
    ran.length = 0;
    const stopped = toolOf("ask_helper", async (_args, { signal }) => {
      const helper = createAgent({
        prompt: "",
        model: scripted([calling(callOf("1", "shell"))]),
        tools: [shell],
        ask: "writes",
      });
      return (await helper.run("Go.", { signal })).text();
    });
    const run = outer({ ...stopped, timeoutMs: 100 });
    const { approval } = await nextEvent(run, "approval-required");
    expect(await nextEvent(run, "approval-settled")).toMatchObject({ question: approval.question });
    expect(resultsOf((await run).transcript)).toMatchObject([{ error_kind: "timeout" }]);
    expect([ran, run.pendingApprovals]).toEqual([[], []]);
  });
});

describe("after a crash", () => {
  const ran: string[] = [];
  const write = toolOf("write", (_args, { callId }) => ran.push(callId), { effects: "writes" });
  const slow = toolOf("wait", () => new Promise(() => {}), { effects: "reads", idempotent: true });

  test("a denied call does not run, even if `ask` has changed", async () => {
    const store = await openMemoryStore();
    const model = scripted([calling(callOf("s", "wait"), callOf("w", "write"))]);
    const run = runSessionLoop(asking(), someAgent(), {
      model,
      tools: [slow, write],
      ask: "writes",
      persist: store,
    });
    await nextEvent(run, "approval-required");
    await run.deny("w", "Never.");
    await drainRuns({ timeoutMs: 0 });
    await run.synchronize().catch(() => {});
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const quick = toolOf("wait", () => "waited", { effects: "reads", idempotent: true });
    const next = runSessionLoop(user, agent, {
      model: scripted(["Done."]),
      tools: [quick, write],
      ask: "never",
      persist: store,
    });
    expect(resultsOf((await next).transcript)).toMatchObject(["waited", { error_kind: "denied", message: "Never." }]);
    expect(ran).toEqual([]);
  });
});

describe("the reach of a call", () => {
  const reach: SandboxReach = { directory: "/srv/work", isolated: false, network: true };
  const refusing = (told: SandboxBackend["reach"]) => (): SandboxBackend => ({
    ...(told && { reach: told }),
    open: () => Promise.reject(new Error("Nothing is opened for a question.")),
  });
  registerSandboxBackend(
    "reach-told",
    refusing(async ({ workingDir = null }) => ({ ...reach, directory: workingDir })),
  );
  registerSandboxBackend("reach-silent", refusing(undefined));
  registerSandboxBackend(
    "reach-broken",
    refusing(() => Promise.reject(new Error("broken"))),
  );
  const sandboxed = toolOf("shell", () => "done", { sandboxed: true, needsApproval: () => true });

  const reachOf = async (backend: string | null, tool: Tool): Promise<SandboxReach | null> => {
    const user = backend === null ? asking() : asking().to(backend, "/srv/work");
    const run = runSessionLoop(user, someAgent(), { model: scripted([calling(callOf("1", "shell"))]), tools: [tool] });
    const { approval } = await nextEvent(run, "approval-required");
    run.abort();
    await run.synchronize().catch(() => {});
    return approval.reach;
  };

  test("is shown for a tool that acts in the sandbox, without opening it", async () => {
    expect(await reachOf("reach-told", sandboxed)).toEqual(reach);
  });

  test("is unknown for other tools, without a place, and if the backend does not report it", async () => {
    const { sandboxed: _sandboxed, ...elsewhere } = sandboxed;
    expect(await reachOf("reach-told", elsewhere)).toBe(null);
    for (const backend of [null, "reach-silent", "reach-broken"]) expect(await reachOf(backend, sandboxed)).toBe(null);
  });
});

test("ask has four values, the strictest first", () => {
  expect(ASK_POLICIES).toEqual(["always", "writes", "commands", "never"]);
});
