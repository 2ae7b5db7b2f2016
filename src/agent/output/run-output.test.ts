import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { callOf, calling, eventsOf, nextEvent, resultsOf, saying, shortly, toolOf } from "../../../test/sample-run.ts";
import { actingBefore, entriesOf } from "../../../test/sample-run-log.ts";
import { offline } from "../../models/offline.ts";
import { type ScriptedReply, scripted } from "../../models/scripted.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { Session } from "../../session/value/session.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { abandonRun } from "../active-runs.ts";
import { createAgent } from "../agent.ts";
import type { Model } from "../model/model.ts";
import { resumeSession } from "../persist/resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { StandardSchema } from "../schema/standard-schema.ts";
import type { SessionRun } from "../session-run.ts";

const Order = z.object({ number: z.string(), paid: z.iso.datetime().transform((time) => new Date(time)) });
const ORDER = '{"number":"4711","paid":"2026-01-02T03:04:05Z"}';
const value = { number: "4711", paid: new Date("2026-01-02T03:04:05Z") };

function agentOf(model: Model, tools = [toolOf("look")]) {
  return createAgent({ prompt: "You know orders.", model, tools, builtInTools: false });
}

/** A model that supports tool calls only. */
function callingModel(...replies: readonly ScriptedReply[]) {
  const { takesOutput: _none, ...model } = scripted(replies);
  return model;
}

const giving = (id: string, args: unknown) => calling(callOf(id, "give_answer", args));

describe("a run with an output", () => {
  test("returns the value as its schema parses it, typed, and records what the model wrote", async () => {
    const store = openMemoryStore();
    const model = scripted([calling(callOf("1", "look")), ORDER]);
    const run = agentOf(model).run("Which order?", { output: Order, persist: store });
    expectTypeOf(run).toEqualTypeOf<SessionRun<typeof Order>>();
    const answer = await run;
    expectTypeOf(answer.output).toEqualTypeOf<z.output<typeof Order>>();
    expect(answer.output).toEqual(value);
    expect(model.requests.map(({ output, tools }) => [output?.["type"], tools?.length])).toEqual([
      ["object", 1],
      ["object", 1],
    ]);
    expect((await entriesOf(store, answer.id)).at(-1)).toMatchObject({ phase: "finished", output: JSON.parse(ORDER) });
    expect((await eventsOf(run)).at(-1)).toMatchObject({ type: "run-finished", output: JSON.parse(ORDER) });
  });

  test("accepts JSON Schema, also for values other than objects, and types it", async () => {
    const output = { type: "array", items: { type: "integer" } } as const;
    const model = scripted(["[1, 2]", '```json\n{"value": [1, 2]}\n```']);
    const answer = await agentOf(model).run("Which?", { output });
    expectTypeOf(answer.output).toEqualTypeOf<readonly number[]>();
    expect(answer.output).toEqual([1, 2]);
    expect(model.requests[0]?.output).toMatchObject({ properties: { value: output }, additionalProperties: false });
  });

  test("reports an invalid value to the model up to the limit, then fails and keeps the messages", async () => {
    const run = agentOf(scripted(["{", "{}", "{}", ORDER])).run("Which?", { output: Order });
    await expect(run.synchronize()).rejects.toMatchObject({
      code: "OUTPUT_INVALID",
      message: expect.stringMatching(/answer\.number is refused: .*answer\.paid is refused: .*\.$/),
    });
    expect(shortly(run.transcript).map((line) => line.slice(0, 24))).toEqual([
      "user: Which?",
      "assistant: {",
      "user: That is not the an",
      "assistant: {}",
      "user: That is not the an",
      "assistant: {}",
    ]);
    expect(run.status).toBe("failed");
    const once = agentOf(scripted(["{}"])).run("Which?", { output: Order, outputRetries: 0 });
    await expect(once.synchronize()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
  });

  test("uses a tool for a model without structured output, and forces the call when there are no other tools", async () => {
    const model = callingModel(calling(callOf("1", "look")), "It is 4711.", giving("2", "{}"), giving("3", ORDER));
    const run = agentOf(model).run("Which?", { output: Order, ask: "always", tools: [] });
    const answer = await run;
    expect(answer.output).toEqual(value);
    expect(model.requests.map(({ tools }) => tools?.map(({ name }) => name))).toEqual(Array(4).fill(["give_answer"]));
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual(Array(4).fill({ name: "give_answer" }));
    expect(resultsOf(answer.transcript).slice(1)).toEqual([
      expect.objectContaining({ error_kind: "invalid_tool_arguments" }),
      "The answer was accepted.",
    ]);
    expect(run.pendingApprovals).toEqual([]);
  });

  test("lets the model call other tools first, and fails if invalid calls do not end", async () => {
    const model = callingModel(calling(callOf("1", "look")), giving("2", "[]"), giving("3", "{"), giving("4", "{}"));
    const run = agentOf(model).run("Which?", { output: Order });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    expect(model.requests.map(({ toolChoice = "auto" }) => toolChoice)).toEqual([
      "auto",
      "auto",
      { name: "give_answer" },
      { name: "give_answer" },
    ]);
    expect(resultsOf(run.transcript)).toHaveLength(4);
  });

  test("uses a tool with an executor, which does not run that tool", async () => {
    const replies = [calling(callOf("1", "look")), giving("2", ORDER)];
    const dispatched: string[] = [];
    const run = runSessionLoop(Session.fromUserMessage("Which?"), Session.fromAgentPrompt(""), {
      executor: {
        complete: async () => replies.shift() ?? saying(""),
        dispatchTool: (_session, { schema }) => `ran ${dispatched.push(schema.name)}`,
      },
      tools: [toolOf("look")],
      output: Order,
    });
    expect((await run).output).toEqual(value);
    expect(dispatched).toEqual(["look"]);
  });

  test("returns the value of its last answer if users add messages in the meantime", async () => {
    const model = scripted([ORDER, '{"number":"12","paid":"2026-01-02T03:04:05Z"}']);
    const run = agentOf(model).run("Which?", { output: Order });
    await run.followUp("And the other one?");
    expect((await run).output).toMatchObject({ number: "12" });
  });

  test("fails if it is cut short before the value, but not if the value itself used up the budget", async () => {
    const look = calling(callOf("1", "look"));
    const cut = agentOf(scripted([look])).run("Which?", { output: Order, maxToolRounds: 1 });
    await expect(cut.synchronize()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    const usage = { inputTokens: 10, outputTokens: 10, totalTokens: 20 };
    const dear = callingModel({ ...giving("1", ORDER), usage });
    expect((await agentOf(dear).run("Which?", { output: Order, budget: { totalTokens: 5 } })).output).toEqual(value);
  });

  test("gets the smallest valid value from the offline model", async () => {
    const Everything = z.object({
      name: z.string().min(3),
      mail: z.email(),
      at: z.iso.datetime(),
      age: z.int().min(18),
      share: z.number().gt(0).lt(1),
      even: z.int().multipleOf(2).min(3),
      below: z.number().max(-2),
      kind: z.enum(["a", "b"]),
      tags: z.array(z.string()).min(2),
      either: z.union([z.boolean(), z.null()]),
      left: z.string().optional(),
    });
    const { output } = await agentOf(offline()).run("What do you know?", { output: Everything });
    expect(output).toEqual({
      name: "xxx",
      mail: "a@example.com",
      at: "2000-01-01T00:00:00Z",
      age: 18,
      share: 0.5,
      even: 4,
      below: -2,
      kind: "a",
      tags: ["", ""],
      either: false,
    });
  });
});

describe("synchronously", () => {
  const handmade: StandardSchema<string> = {
    "~standard": { version: 1, vendor: "mine", validate: (given) => ({ value: String(given) }) },
  };

  test.for([
    ["a schema that gives no JSON Schema", handmade, /^The output has a schema of "mine" that gives no JSON Schema/],
    ["a schema with a part that is no JSON", z.object({ at: z.date() }), /^The output has a schema that gives no JSON/],
    ["a broken JSON Schema", { type: "strng" }, /output\.type must be one of/],
    ["what is no schema", 5, /^The output has no schema/],
  ] as const)("%s is refused, and nothing is written", async ([, output, message]) => {
    const store = openMemoryStore();
    const run = () => agentOf(scripted([])).run("Which?", { output: output as never, persist: store });
    expect(run).toThrow(expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringMatching(message) }));
    expect((await store.list({})).items).toEqual([]);
  });

  test("a tool with the name of the structured output tool is refused", () => {
    const run = () => agentOf(scripted([]), [toolOf("give_answer")]).run("Which?", { output: Order });
    expect(run).toThrow(expect.objectContaining({ code: "INVALID_TOOL" }));
  });
});

describe("a run whose process died", () => {
  const ways = [
    ["a text", scripted, (text: string): ScriptedReply => text],
    ["a call", (replies: readonly ScriptedReply[]) => callingModel(...replies), (text: string) => giving("1", text)],
  ] as const;

  const isEnd = (draft: EntryDraft) => draft.type === "run" && draft.phase !== "started";
  const isResult = (draft: EntryDraft) => draft.type === "message" && draft.message.role === "tool";
  const dies = async () => {
    throw new Error("The process is gone.");
  };

  test.for(ways)("does not reset the number of invalid values, %s", async ([, modelOf, given]) => {
    const store = openMemoryStore();
    const hanging = modelOf([given("{}"), given("{}"), () => new Promise<never>(() => {})]);
    const run = agentOf(hanging).run("Which?", { output: Order, persist: store });
    await nextEvent(run, "round-started", ({ round }) => round === 3);
    await abandonRun(run.id);
    const { user } = await resumeSession({ store, sessionId: run.id });
    const again = agentOf(modelOf([given("{}"), given(ORDER)])).run(user, { output: Order, persist: store });
    await expect(again.synchronize()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    expect(again.runId).toBe(run.runId);
  });

  test.for(ways)(
    "does not ask again for a value that was given, as %s, before its end was recorded",
    async ([, modelOf, given]) => {
      const store = openMemoryStore();
      const dying = actingBefore(store, isEnd, dies);
      const run = agentOf(modelOf([given(ORDER)])).run("Which?", { output: Order, persist: dying });
      await expect(run.synchronize()).rejects.toThrow("The process is gone.");
      const { user } = await resumeSession({ store, sessionId: run.id });
      const again = await agentOf(modelOf([])).run(user, { output: Order, persist: store });
      expect(again.output).toEqual(value);
    },
  );

  test("gets the result of the call that gave the value", async () => {
    const store = openMemoryStore();
    const dying = actingBefore(store, (draft) => isEnd(draft) || isResult(draft), dies);
    const run = agentOf(callingModel(giving("1", ORDER))).run("Which?", { output: Order, persist: dying });
    await expect(run.synchronize()).rejects.toThrow("The process is gone.");
    const { user } = await resumeSession({ store, sessionId: run.id });
    const again = await agentOf(callingModel()).run(user, { output: Order, persist: store });
    expect(again.output).toEqual(value);
  });
});
