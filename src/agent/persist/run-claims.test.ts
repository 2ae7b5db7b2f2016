import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CountedBackend, gate } from "../../../test/counted-sandbox.ts";
import { asking, calling, callOf, modelOf, saying, someAgent, toolOf } from "../../../test/sample-run.ts";
import { entriesOf } from "../../../test/sample-run-log.ts";
import type { RecoveredRun } from "../../lifecycle/runs/recover-run.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted } from "../../models/scripted.ts";
import type { SessionStore } from "../../session/store.ts";
import { Session } from "../../session/value/session.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { loadSession } from "../../tree/persisted-session.ts";
import { abandonRun } from "../active-runs.ts";
import { createAgent } from "../agent.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { Model } from "../model/model.ts";
import type { RunEvent } from "../run-event.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import { answerIdOf } from "../../session/log/open-runs.ts";
import { resumeSession } from "./resume-session.ts";

const usage = { inputTokens: 30, outputTokens: 20, totalTokens: 50 };

/** A run that parks at the question of every answer and is recovered after each one, until it ends; how often it was claimed. */
async function claimsOf(options: Partial<LoopOptions>): Promise<{ claims: number; end: object; spent: number }> {
  const store = openMemoryStore();
  const model = modelOf(async () => ({ ...calling(callOf("1", "pay")), usage }));
  const tools = [toolOf("pay", () => "paid", { needsApproval: () => true })];
  const given = { model, tools, builtInTools: false, persist: store, park: { afterMs: 0 }, ...options };
  let run = runSessionLoop(asking(), someAgent(), given);
  for (let claims = 1; ; claims++) {
    const { sessionId, status, questions, usage: spent } = await run;
    const id = sessionId as string;
    if (status !== "parked" || claims === 8) {
      const end = (await entriesOf(store, id)).findLast(({ type }) => type === "run") as object;
      return { claims, end, spent: spent?.totalTokens ?? 0 };
    }
    for (const { question, callId } of questions) {
      const decision = { approved: true };
      const ids = { id: answerIdOf(question), runId: run.runId, callId, question };
      await store.append(id, [{ type: "approval", ...ids, decision }]);
    }
    const { user, agent } = await resumeSession({ store, sessionId: id });
    run = runSessionLoop(user, agent, given);
  }
}

test("the limits of a run hold over all of its claims: its rounds with calls", async () => {
  const { claims, end, spent } = await claimsOf({ maxToolRounds: 2 });
  expect([claims, spent]).toEqual([3, 100]);
  expect(end).toMatchObject({ phase: "finished", truncated: true, usage: { totalTokens: 100 } });
});

test("the limits of a run hold over all of its claims: its budget", async () => {
  const { claims, end, spent } = await claimsOf({ budget: { totalTokens: 120 } });
  expect([claims, spent]).toEqual([3, 150]);
  expect(end).toMatchObject({ phase: "finished", truncated: true, usage: { totalTokens: 150 } });
});

test("a sandbox that a tool opens through its session is recorded, and a recovery opens no second one", async () => {
  const store = openMemoryStore();
  const backend = new CountedBackend();
  const opened = toolOf("open", async (_args, { session }) => (await session.requireSandbox()).id);
  const given = { tools: [opened], builtInTools: false, persist: store };
  const calls = calling(callOf("1", "open"));
  let isAsked = (): void => {};
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const hanging = async (): Promise<never> => {
    isAsked();
    return new Promise<never>(() => {});
  };
  const run = runSessionLoop(asking().to(backend.name), someAgent(), { ...given, model: scripted([calls, hanging]) });
  run.synchronize().catch(() => {});
  await asked;
  await abandonRun(run.id);
  const { user, agent } = await resumeSession({ store, sessionId: run.id });
  const answer = await runSessionLoop(user, agent, { ...given, model: scripted([calls, saying("Done.")]) });
  expect(backend.opens).toBe(1);
  const [started, placed] = (await entriesOf(store, run.id)).filter(({ type }) => type === "run");
  expect(started).not.toHaveProperty("sandbox");
  expect(placed).toMatchObject({ phase: "started", sandbox: { handleId: backend.live.keys().next().value } });
  await answer.closeSandbox();
});

test("sandboxHandleId is recorded in place of the handle of a sandbox that is open already", async () => {
  const store = openMemoryStore();
  const user = asking().to(new CountedBackend().name);
  await user.requireSandbox();
  const tools = [toolOf("open", async (_args, context) => (await context.requireSandbox()).id)];
  const model = scripted([calling(callOf("1", "open")), saying("Done.")]);
  const given = { model, tools, builtInTools: false, persist: store, sandboxHandleId: "outer" };
  const answer = await runSessionLoop(user, someAgent(), given);
  const handles = (await entriesOf(store, answer.id)).flatMap((entry) =>
    entry.type === "run" && entry.sandbox !== undefined ? entry.sandbox.handleId : [],
  );
  expect(new Set(handles)).toEqual(new Set(["outer"]));
  await answer.closeSandbox();
});

test("persist with the id of a session continues its file, and writes no file of that name", async () => {
  const [home, work] = await Promise.all(["home", "work"].map((name) => mkdtemp(join(tmpdir(), `skein-${name}-`))));
  const [before, cwd] = [process.env.SKEIN_HOME, process.cwd()];
  onTestFinished(async () => {
    process.chdir(cwd);
    if (before === undefined) delete process.env.SKEIN_HOME;
    else process.env.SKEIN_HOME = before;
    await Promise.all([home, work].map((path) => rm(path as string, { recursive: true, force: true })));
  });
  process.env.SKEIN_HOME = home;
  process.chdir(work as string);
  const model = scripted(["One.", "Two."]);
  const { id } = await runSessionLoop(asking(), someAgent(), { model, persist: true, register: false });
  const { user, agent } = await resumeSession(id);
  await runSessionLoop(user, agent, { model, persist: id });
  expect(await readdir(work as string)).toEqual([]);
  expect((await loadSession(id)).transcript.toMessages().map(({ content }) => content)).toEqual(
    expect.arrayContaining(["One.", "Two."]),
  );
});

test("a run without instructions is recovered without a system message", async () => {
  const store = openMemoryStore();
  const nobody = Session.fromAgentPrompt("");
  const failing = scripted([new Error("Gone.")]);
  const run = runSessionLoop(asking("Hi."), nobody, { model: failing, persist: store });
  await expect(run.synchronize()).rejects.toThrow("Gone.");
  const { user, agent } = await resumeSession({ store, sessionId: run.id });
  const model = scripted(["Hello."]);
  await runSessionLoop(user, agent, { model, persist: store });
  expect(model.requests[0]?.messages).toEqual([{ role: "user", content: "Hi." }]);
});

test("an agent with an empty prompt sends no system message, recovered or not", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId: id } = await manager.create({ userId: "ann" });
  await manager.request(id, { agent: "worker", input: "Hi.", runId: "r" });
  const requests: unknown[] = [];
  for (const dies of [true, false]) {
    const asked = gate();
    const model = modelOf(({ messages }) => {
      requests.push(messages);
      asked.open();
      return dies ? new Promise<never>(() => {}) : Promise.resolve(saying("Hello."));
    });
    const worker = createAgent({ name: "worker", prompt: "", builtInTools: false, model });
    const { run } = (await manager.recover(id, { worker })) as RecoveredRun;
    const over = run.synchronize().catch(() => {});
    await asked.pass;
    if (dies) await abandonRun(run.id);
    await over;
  }
  expect(requests).toEqual([[{ role: "user", content: "Hi." }], [{ role: "user", content: "Hi." }]]);
});

test("input of a run that failed is not delivered to a later run with a message of its own, recovered or not", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId: id } = await manager.create({ userId: "ann" });
  const recover = async (model: Model): Promise<RecoveredRun> => {
    const worker = createAgent({ name: "worker", prompt: "Work.", builtInTools: false, model });
    return (await manager.recover(id, { worker })) as RecoveredRun;
  };
  await manager.request(id, { agent: "worker", input: "One.", runId: "one" });
  const failing = modelOf(async () => {
    await manager.followUp(id, "And this?");
    throw new Error("Gone.");
  });
  await expect((await recover(failing)).run.synchronize()).rejects.toThrow("Gone.");
  await manager.request(id, { agent: "worker", input: "Two.", runId: "two" });
  let isAsked = (): void => {};
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const { run: interrupted } = await recover(
    modelOf(() => {
      isAsked();
      return new Promise<never>(() => {});
    }),
  );
  interrupted.synchronize().catch(() => {});
  await asked;
  await abandonRun(interrupted.id);
  const model = scripted(["Done.", "Done with that, too."]);
  await (await recover(model)).run.synchronize();
  expect(model.requests).toHaveLength(1);
});

test("a run that was found before others appended is claimed nonetheless, and emits one start", async () => {
  const inner = openMemoryStore();
  const manager = new SessionManager({ store: inner });
  const { sessionId: id } = await manager.create({ userId: "ann" });
  let spoken = false;
  const lease: SessionStore["lease"] = async (...args) => {
    if (!spoken) await inner.append(id, [{ type: "message", message: { role: "user", content: "By the way." } }]);
    spoken = true;
    return inner.lease(...args);
  };
  const store = new Proxy(inner, {
    get(target, key) {
      const own: unknown = key === "lease" ? lease : Reflect.get(target, key, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  await manager.request(id, { agent: "worker", input: "Go.", runId: "r" });
  const model = scripted(["Done."]);
  const worker = createAgent({ name: "worker", prompt: "Work.", builtInTools: false, model });
  const events: string[] = [];
  const onEvent = ({ type }: RunEvent): void => void events.push(type);
  const { run } = (await new SessionManager({ store }).recover(id, { worker }, { onEvent })) as RecoveredRun;
  await run.synchronize();
  expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(["Work.", "By the way.", "Go."]);
  expect(events.filter((type) => /^run-/.test(type))).toEqual(["run-started", "run-finished"]);
});
