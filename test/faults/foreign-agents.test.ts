import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { abandonRun } from "../../src/agent/active-runs.ts";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { runHere } from "../cli/run-skein.ts";
import { makeChat, makeWorkspace, tell, wordsOf } from "../cli/sample-chat.ts";
import { calling, callOf, nextEvent, shortly, toolOf } from "../sample-run.ts";
import { start } from "./program-support.ts";

const done = (name: string | undefined, ...tools: string[]): Agent =>
  createAgent({
    ...(name !== undefined && { name }),
    prompt: "",
    model: scripted(["Done."]),
    tools: tools.map((tool) => toolOf(tool, () => "paid", { idempotent: true })),
    builtInTools: false,
  });

/** A session whose run died while it waited for a tool. */
async function withDeadCall(
  store: SessionStore,
  name: string | undefined,
  tool = "pay",
  asked = tool,
): Promise<string> {
  const hang = toolOf(tool, () => new Promise(() => {}));
  const model = scripted([calling(callOf("c1", asked)), () => new Promise<never>(() => {})]);
  const named = name === undefined ? {} : { name };
  const agent = createAgent({ ...named, prompt: "", model, tools: [hang], builtInTools: false });
  const run = agent.run("Pay.", { persist: store });
  await nextEvent(run, "tool-started");
  await abandonRun(run.id);
  return run.id;
}

test("after kill -9 inside a tool, another program is refused and the same one continues", async () => {
  const workspace = await makeWorkspace();
  const path = join(workspace, "skein.db");
  const killed = start("hang-in-tool.mjs", [path]);
  while (killed.lines().length < 2) {
    if (killed.child.exitCode !== null) throw new Error("The program ended before its tool ran.");
    await killed.more();
  }
  const [id = ""] = killed.lines();
  killed.child.kill("SIGKILL");
  await killed.ended;
  await using store = await openSqliteStore({ path });
  const before = await digestOf(store, id);
  const refused = await runHere(["recover", id, "--store", `sqlite:${path}`, "--workspace", workspace]);
  expect([refused.code, refused.stdout + refused.stderr]).toEqual([
    1,
    expect.stringMatching(/is for agent "clerk", but this is "skein"/),
  ]);
  await using manager = new SessionManager({ store });
  await expect(manager.recover(id, { clerk: done("clerk") })).rejects.toMatchObject({
    code: "TOOL_NOT_FOUND",
    message: expect.stringMatching(/"pay", a tool that agent "clerk" of process \d+ on .* does not have/),
  });
  expect([await digestOf(store, id), await store.leaseOf(id)]).toEqual([before, null]);
  const listed = await runHere(["runs", "--store", `sqlite:${path}`]);
  expect(listed.stdout).toMatch(/interrupted +clerk .*a program that has clerk/);
  const found = await manager.recover(id, { clerk: done("clerk", "pay") });
  expect(shortly((await found?.run.synchronize())?.transcript as never).at(-1)).toBe("assistant: Done.");
});

describe("a run that its process left", () => {
  test("with a call of a tool that it never had continues, and the model gets an error", async () => {
    const store = openMemoryStore();
    const model = scripted([calling(callOf("c1", "nothing"))]);
    const agent = createAgent({ name: "clerk", prompt: "", model, builtInTools: false });
    const run = agent.run("Pay.", { persist: store });
    await run.synchronize().catch(() => {});
    // The log after a crash between the answer and its result.
    const copy = openMemoryStore();
    const head = await store.head(run.id);
    const entries = [];
    for await (const entry of store.read(run.id)) {
      entries.push(entry);
      if (entry.type === "message" && entry.message.role === "assistant") break;
    }
    await copy.create(head?.header as never, { entries });
    const found = await new SessionManager({ store: copy }).recover(run.id, { clerk: done("clerk") });
    expect(shortly((await found?.run.synchronize())?.transcript as never).slice(-2)).toEqual([
      expect.stringContaining("unknown_tool"),
      "assistant: Done.",
    ]);
  });

  test("without a name is not recovered by a worker, also by one with a single agent, but can be recovered in code", async () => {
    const store = openMemoryStore();
    const id = await withDeadCall(store, undefined);
    await using manager = new SessionManager({ store });
    const queue = inProcessQueue();
    const worker = await startWorker({ manager, queue, agents: [done("first", "pay")], onError: () => {}, sweepMs: 0 });
    onTestFinished(() => worker.close());
    await queue.notify(id, { runner: "" });
    const blocked = async () => (await manager.runs({ state: "interrupted" })).items[0]?.blocked;
    await expect.poll(blocked).toMatchObject({ code: "AGENT_NOT_FOUND" });
    await worker.close();
    const found = await manager.recover(id, () => done("mine", "pay"));
    expect((await found?.run.synchronize())?.text()).toBe("Done.");
  });

  test("whose tool a worker lacks is shown with the worker and the tool", async () => {
    const store = openMemoryStore();
    const id = await withDeadCall(store, "clerk");
    await using manager = new SessionManager({ store });
    const queue = inProcessQueue();
    const init = { manager, queue, agents: [done("clerk")], name: "w1", onError: () => {}, sweepMs: 0 };
    const worker = await startWorker(init);
    onTestFinished(() => worker.close());
    await queue.notify(id, { runner: "clerk" });
    const blocked = async () => (await manager.runs({ state: "interrupted" })).items[0]?.blocked;
    await expect.poll(blocked).toMatchObject({
      code: "TOOL_NOT_FOUND",
      message: expect.stringMatching(/^Worker "w1": .*"pay"/),
    });
  });

  test("is not answered by the chat of another program, which sends no request and writes nothing", async () => {
    const store = openMemoryStore();
    const [named, unnamed] = [await withDeadCall(store, "clerk"), await withDeadCall(store, undefined)];
    for (const [id, why] of [
      [named, /is for agent "clerk"/],
      [unnamed, /was started by an agent that its log does not name/],
    ] as const) {
      const before = await digestOf(store, id);
      const chat = await makeChat(scripted(["I am offline."]), { store });
      for await (const _output of chat.open(id));
      expect(wordsOf(await tell(chat, "/recover"))).toEqual([expect.stringMatching(why)]);
      expect(await digestOf(store, id)).toEqual(before);
    }
    const others = { agents: new Map(), unnamed: "skein" };
    const chat = await makeChat(scripted(["Done."]), {
      store,
      others,
      model: "other/one",
      tools: [toolOf("pay", () => "paid")],
    });
    for await (const _output of chat.open(unnamed));
    expect(wordsOf(await tell(chat, "/recover"))).toEqual([]);
    expect((await store.head(unnamed))?.openRuns).toEqual([]);
  });
});

test("without a key, chat, recover, compact and merge of a session that a model answered fail and write nothing", async () => {
  const workspace = await makeWorkspace();
  await mkdir(join(workspace, "elsewhere"));
  const path = join(workspace, "skein.db");
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  const { sessionId: id } = await manager.create({ userId: "local", cwd: workspace });
  const said = { role: "assistant", content: "Hello.", provider: "openai", model: "gpt-5" } as const;
  await store.append(id, [
    { type: "message", message: { role: "user", content: "Hi." } },
    { type: "message", message: said },
  ]);
  const { sessionId: branch } = await manager.fork(id, "try");
  await manager.addTurn(branch, said);
  await store.append(id, [{ type: "run_request", id: "run:r", runId: "r", input: "More." }]);
  const before = await digestOf(store, id);
  const key = process.env.OPENAI_API_KEY;
  delete process.env.OPENAI_API_KEY;
  onTestFinished(() => {
    if (key !== undefined) process.env.OPENAI_API_KEY = key;
  });
  const at = ["--store", `sqlite:${path}`];
  for (const args of [
    ["chat", id, "--workspace", workspace],
    ["recover", id, "--workspace", workspace],
    ["compact", id],
    ["merge", id, branch, "--strategy", "summary"],
  ]) {
    const { code, stdout, stderr } = await runHere([...args, ...at]);
    expect([args[0], code, stdout + stderr]).toEqual([args[0], 1, expect.stringContaining("OPENAI_API_KEY")]);
  }
  expect(await digestOf(store, id)).toEqual(before);
  const { code, stderr } = await runHere(["chat", id, ...at]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/belongs to .*; give --workspace with the directory for the tools/),
  ]);
});
