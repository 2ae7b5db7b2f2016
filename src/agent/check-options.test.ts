import { afterEach, describe, expect, test } from "vitest";
import { asking, someAgent, toolOf } from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { trackLineage } from "../session/lineage/lineage-scope.ts";
import type { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { drainRuns } from "./active-runs.ts";
import { createAgent } from "./agent.ts";
import { registerBuiltInTools } from "./tools/offer-tools.ts";
import type { LoopOptions } from "./loop-options.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";

const model = scripted([]);
const silent = scripted([], { stream: false });
const executor = { complete: () => Promise.reject(new Error("Nobody asks.")) };

registerBuiltInTools([toolOf("built_in_sample"), toolOf("built_in_other")]);

/** Options that JavaScript accepts, whatever the types say. */
const anyOptions = (options: object): LoopOptions => options as LoopOptions;

const WRONG: Readonly<Record<string, { options: object | undefined; code: string; says: RegExp }>> = {
  "no options": { options: undefined, code: "INVALID_OPTION", says: /an object of options/ },
  "no model": { options: {}, code: "INVALID_OPTION", says: /no model/ },
  "a model that is none": { options: { model: { id: "x" } }, code: "INVALID_OPTION", says: /no model/ },
  "events of a model that cannot stream": {
    options: { model: silent, onEvent: () => {} },
    code: "INVALID_OPTION",
    says: /scripted\/scripted cannot stream/,
  },
  "an executor with onEvent": {
    options: { model, executor, onEvent: () => {} },
    code: "INVALID_OPTION",
    says: /streamingExecutor/,
  },
  "an executor that completes nothing": { options: { executor: {} }, code: "INVALID_OPTION", says: /complete/ },
  "a listener that is none": { options: { model, onEvent: "loud" }, code: "INVALID_OPTION", says: /onEvent/ },
  "a signal that is none": { options: { model, signal: {} }, code: "INVALID_OPTION", says: /AbortSignal/ },
  "an agent's name that is none": { options: { model, agentName: 7 }, code: "INVALID_OPTION", says: /agentName/ },
  "no place to keep it in": { options: { model, persist: "" }, code: "INVALID_OPTION", says: /persist/ },
  "a number to keep it in": { options: { model, persist: 7 }, code: "INVALID_OPTION", says: /persist/ },
  "no attempts": { options: { model, retry: { attempts: 0 } }, code: "INVALID_OPTION", says: /retry\.attempts/ },
  "half an attempt": { options: { model, retry: { attempts: 1.5 } }, code: "INVALID_OPTION", says: /retry\.attempts/ },
  "a wait before now": { options: { model, retry: { baseDelayMs: -1 } }, code: "INVALID_OPTION", says: /baseDelayMs/ },
  "an endless wait": {
    options: { model, retry: { delayMaxMs: Number.POSITIVE_INFINITY } },
    code: "INVALID_OPTION",
    says: /delayMaxMs/,
  },
};

const WRONG_FOR_LOOPS: typeof WRONG = {
  "no rounds": { options: { model, maxToolRounds: 0 }, code: "INVALID_OPTION", says: /maxToolRounds is "0"/ },
  "half a round": { options: { model, maxToolRounds: 2.5 }, code: "INVALID_OPTION", says: /maxToolRounds/ },
  "a budget below nothing": { options: { model, budget: { cost: -1 } }, code: "INVALID_OPTION", says: /cost/ },
  "a budget of no number": {
    options: { model, budget: { totalTokens: Number.NaN } },
    code: "INVALID_OPTION",
    says: /totalTokens/,
  },
  "a budget over something else": { options: { model, budget: { over: "all" } }, code: "INVALID_OPTION", says: /over/ },
  "an onBudget that is none": { options: { model, onBudget: "stop" }, code: "INVALID_OPTION", says: /onBudget/ },
  "compaction: true": { options: { model, compaction: true }, code: "INVALID_OPTION", says: /compaction/ },
  "compaction settings that cannot be": {
    options: { model, compaction: { settings: { reserveTokens: -1 } } },
    code: "INVALID_OPTION",
    says: /reserveTokens/,
  },
  "a tool that shadows a built-in one": {
    options: { model, tools: [toolOf("built_in_sample")] },
    code: "INVALID_TOOL",
    says: /built_in_sample has the name of a built-in tool/,
  },
  "two tools of one name": {
    options: { model, tools: [toolOf("look"), toolOf("look")] },
    code: "INVALID_TOOL",
    says: /Two tools have the name look/,
  },
  "a tool that is none": { options: { model, tools: [{}] }, code: "INVALID_TOOL", says: /defineTool/ },
  "a built-in tool that is not there": {
    options: { model, builtInTools: ["built_in_nothing"] },
    code: "INVALID_OPTION",
    says: /"built_in_nothing"; there are: .*built_in_sample/,
  },
  "an executor's tool that nothing can run": {
    options: { executor: { ...executor, toolSchemas: () => [toolOf("elsewhere").schema] } },
    code: "INVALID_TOOL",
    says: /"elsewhere"/,
  },
};

afterEach(() => drainRuns());

/** Calls, expects a refusal, and that no session was made, registered or kept by it. */
async function refused(call: (options: LoopOptions) => unknown, wrong: (typeof WRONG)[string]): Promise<void> {
  const store = openMemoryStore();
  const options = wrong.options === undefined ? undefined : { persist: store, ...wrong.options };
  const known = sessionRegistry.size;
  const made = trackLineage((journal) => {
    expect(() => call(anyOptions(options as object))).toThrow(
      expect.objectContaining({ code: wrong.code, message: expect.stringMatching(wrong.says) }),
    );
    return journal.visitOrder;
  });
  expect(made).toEqual([]);
  expect(sessionRegistry.size).toBe(known);
  expect(await store.count()).toBe(0);
  expect(await drainRuns({ timeoutMs: 0 })).toEqual({ finished: [], abandoned: [] });
}

describe("a loop throws synchronously, and starts nothing, for", () => {
  const [user, agent] = [asking(), someAgent()];
  test.each(Object.entries({ ...WRONG, ...WRONG_FOR_LOOPS }))("%s", async (_name, wrong) => {
    await refused((options) => runSessionLoop(user, agent, options), wrong);
  });

  test("an input or an agent that is not a session", async () => {
    const wrong = { options: { model }, code: "INVALID_OPTION", says: /not a session/ };
    await refused((options) => runSessionLoop("hello" as unknown as Session, agent, options), wrong);
    await refused((options) => runSessionLoop(user, "be brief" as unknown as Session, options), wrong);
    await refused((options) => runSessionLoop(user, undefined as unknown as Session, options), wrong);
  });
});

describe("a compress throws synchronously, and starts nothing, for", () => {
  const [user, agent] = [asking(), someAgent()];
  test.each(Object.entries(WRONG))("%s", async (_name, wrong) => {
    await refused((options) => runSessionCompress(user, agent, options), wrong);
  });

  test("an agent that is not a session, or an empty instruction", async () => {
    const wrong = { options: { model }, code: "INVALID_OPTION", says: /not a session|instruction/ };
    await refused((options) => runSessionCompress(user, null as unknown as Session, options), wrong);
    await refused((options) => runSessionCompress(user, agent, { ...options, instruction: " " }), wrong);
  });
});

test("an agent without a prompt or a model is refused when it is made", () => {
  expect(() => createAgent({ model } as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  expect(() => createAgent({ prompt: "Be brief." } as never)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

describe("built-in tools", () => {
  const offered = async (options: Partial<LoopOptions>) => {
    const asked = scripted(["Done."]);
    await runSessionLoop(asking(), someAgent(), { model: asked, ...options });
    return asked.requests[0]?.tools?.map(({ name }) => name);
  };

  test("are offered beside a loop's own, all, some or none", async () => {
    const tools = [toolOf("look")];
    expect(await offered({ tools })).toEqual(["built_in_sample", "built_in_other", "look"]);
    expect(await offered({ tools, builtInTools: ["built_in_other"] })).toEqual(["built_in_other", "look"]);
    expect(await offered({ tools, builtInTools: false })).toEqual(["look"]);
    expect(await offered({ builtInTools: false })).toBeUndefined();
  });

  test("that a loop does not offer can be replaced by its own tools", async () => {
    const own = toolOf("built_in_sample");
    expect(await offered({ tools: [own], builtInTools: ["built_in_other"] })).toEqual([
      "built_in_other",
      "built_in_sample",
    ]);
    expect(() => runSessionLoop(asking(), someAgent(), { model, tools: [own, own], builtInTools: false })).toThrow(
      /Two tools/,
    );
  });
});
