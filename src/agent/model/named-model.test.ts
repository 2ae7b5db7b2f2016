import { beforeAll, describe, expect, test } from "vitest";
import { createAgent } from "../agent.ts";
import { compact } from "../context/compact.ts";
import { summarizeBranch } from "../context/summarize-branch.ts";
import { runSessionCompress } from "../run-session-compress.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import { LlmTurnManager } from "../../group/turns/llm-turn-manager.ts";
import { SummaryMerge } from "../../lifecycle/merge/summary-merge.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted } from "../../models/index.ts";
import { Session } from "../../session/value/session.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { createTree } from "../../tree/open-tree.ts";
import { registerModelProvider } from "./model-providers.ts";

beforeAll(() => registerModelProvider("named", (id) => ({ ...scripted([`${id} has answered.`]), id })));

const never = scripted([]);
const agentOf = () => createAgent({ name: "helper", prompt: "", model: never, builtInTools: false });

describe("a model is given by its name", () => {
  test("to a run of a manager, new and recovered", async () => {
    const manager = new SessionManager({ store: openMemoryStore() });
    const answer = await manager.run(agentOf(), "Hi.", { model: "named/one" });
    expect(answer.text()).toBe("one has answered.");
    const next = await manager.run(answer.sessionId, agentOf(), "Hi.", { model: "named/two", ifBusy: "enqueue" });
    expect(next.text()).toBe("two has answered.");
    await manager.request(answer.sessionId, { agent: "helper", input: "Hi." });
    const found = await manager.recover(answer.sessionId, { helper: agentOf() }, { model: "named/three" });
    expect((await found?.run)?.text()).toBe("three has answered.");
  });

  test("to a run of a session value, and to a summary of one", async () => {
    const [user, agent] = [Session.fromUserMessage("Hi."), Session.fromAgentPrompt("You help.")];
    expect((await agentOf().run("Hi.", { model: "named/one" })).text()).toBe("one has answered.");
    expect((await runSessionLoop(user, agent, { model: "named/two" })).text()).toBe("two has answered.");
    const short = await runSessionCompress(user, agent, { model: "named/three" });
    expect(short.transcript.toMessages()).toMatchObject([{ role: "user", content: "three has answered." }]);
  });

  test("to the summary of a context and of a branch", async () => {
    const tree = await createTree(openMemoryStore(), { userId: "ann" });
    const first = await tree.appendMessage({ role: "user", content: "One." });
    for (const content of ["Two.", "Three."]) await tree.appendMessage({ role: "user", content });
    const settings = { keepRecentTokens: 1 };
    expect(await compact(tree, { model: "named/one", settings })).toMatchObject({ summary: "one has answered." });
    const left = await summarizeBranch(tree, first.id, { model: "named/two" });
    expect(left).toMatchObject({ summary: "two has answered." });
  });

  test("to a compaction in a run, a merge and a turn manager", async () => {
    const compaction = { model: "named/one" };
    expect((await createAgent({ prompt: "", model: "named/two", compaction }).run("Hi.")).text()).toContain("two");
    expect(new SummaryMerge({ model: "named/one" }).name).toBe("summary");
    expect(new LlmTurnManager("named/one")).toBeInstanceOf(LlmTurnManager);
  });
});

test("a name that no provider has is refused before anything is stored", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const refused = expect.objectContaining({ code: "INVALID_OPTION" });
  for (const model of ["nothing/one", "", 5, {}] as never[]) {
    const started = async () => manager.run(agentOf(), "Hi.", { model });
    await expect(started()).rejects.toEqual(refused);
    expect(() => new LlmTurnManager(model)).toThrow(refused);
    expect(() => createAgent({ prompt: "", model: never, compaction: { model } }).run("Hi.")).toThrow(refused);
  }
  expect((await manager.list({})).items).toEqual([]);
});
