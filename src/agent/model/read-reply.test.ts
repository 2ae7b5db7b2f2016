import { describe, expect, test } from "vitest";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  modelOf,
  shortly,
  someAgent,
  streamOf,
  toolOf,
} from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import { Session } from "../../session/value/session.ts";
import type { ModelReply } from "./model.ts";
import { runSessionLoop } from "../run-session-loop.ts";

const retry = { baseDelayMs: 0 };

describe("an invalid answer fails the run as malformed and is not retried, for", () => {
  const cycle: Record<string, unknown> = { role: "assistant", content: "x" };
  cycle.self = cycle;
  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "hello"],
    ["an empty object", {}],
    ["the role of a user", { role: "user", content: "hello" }],
    ["content that is a number", { role: "assistant", content: 7 }],
    ["content parts that are none", { role: "assistant", content: [{ type: "video" }] }],
    ["calls that are no list", { role: "assistant", content: null, toolCalls: "look" }],
    ["a call that is nothing", { role: "assistant", content: null, toolCalls: [null] }],
    ["a call without a name", { role: "assistant", content: null, toolCalls: [{ id: "a", arguments: "{}" }] }],
    [
      "arguments that are an object",
      { role: "assistant", content: null, toolCalls: [{ id: "a", name: "look", arguments: {} }] },
    ],
    ["a stop reason that is none", { role: "assistant", content: "x", stopReason: "bored" }],
    ["a usage that is none", { role: "assistant", content: "x", usage: { inputTokens: Number.NaN } }],
    ["a cost below nothing", { role: "assistant", content: "x", cost: -1 }],
    ["something that JSON cannot carry", cycle],
  ])("%s", async (_name, reply) => {
    let asked = 0;
    const model = modelOf(async () => {
      asked += 1;
      return reply as ModelReply;
    });
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")], retry });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "MODEL_FAILED", kind: "malformed" });
    expect(asked).toBe(1);
    expect(shortly(run.transcript)).toEqual(["user: Do it."]);
    const next = await runSessionLoop(Session.of(run.transcript), someAgent(), { model: scripted(["Fine."]) });
    expect(next.text()).toBe("Fine.");
  });

  test("no valid answer: a valid call of the same tool runs", async () => {
    const session = await runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "look")), "Done."]),
      tools: [toolOf("look")],
    });
    expect(session.text()).toBe("Done.");
  });
});

describe("an answer whose stop reason says", () => {
  test("that it is an error fails the run", async () => {
    const model = scripted([{ role: "assistant", content: "Sorry.", stopReason: "error" }]);
    await expect(runSessionLoop(asking(), someAgent(), { model, retry }).synchronize()).rejects.toMatchObject({
      code: "MODEL_FAILED",
      kind: "other",
    });
  });

  test("that it was aborted fails the run as aborted", async () => {
    const model = scripted([{ role: "assistant", content: "Sor", stopReason: "aborted" }]);
    await expect(runSessionLoop(asking(), someAgent(), { model }).synchronize()).rejects.toMatchObject({
      code: "ABORTED",
    });
  });

  test("nothing ends the run, and the next request is valid", async () => {
    const session = await runSessionLoop(asking(), someAgent(), {
      model: scripted([{ role: "assistant", content: null }]),
    });
    const model = scripted(["Now."]);
    await runSessionLoop(session, someAgent(), { model });
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(["system", "user"]);
  });
});

describe("a stream", () => {
  test("that ends before its answer is complete is retried, and then fails the run as a lost connection", async () => {
    let asked = 0;
    const model = streamOf(async function* () {
      asked += 1;
      yield { type: "text-delta", text: "Half" };
    });
    const run = runSessionLoop(asking(), someAgent(), { model, retry });
    await expect(run.synchronize()).rejects.toMatchObject({
      kind: "connection",
      message: /sample\/sample ended before it was complete/,
    });
    expect(asked).toBe(4);
    expect(shortly(run.transcript)).toEqual(["user: Do it."]);
  });

  test("without a complete answer is assembled from its deltas", async () => {
    const model = scripted([
      async function* () {
        yield { type: "thinking-delta", text: "Let me " };
        yield { type: "thinking-delta", text: "look." };
        yield { type: "tool-call-delta", index: 1, name: "look", arguments: '{"n":' };
        yield { type: "text-delta", text: "Looking." };
        yield { type: "tool-call-delta", index: 0, id: "first", name: "look", arguments: "{}" };
        yield { type: "tool-call-delta", index: 1, arguments: "2}" };
        yield { type: "finish", stopReason: "tool_calls", usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } };
      },
      "Done.",
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look", (args) => args)] });
    const session = await run;
    expect(session.transcript.at(1)?.message).toMatchObject({
      content: [
        { type: "thinking", text: "Let me look." },
        { type: "text", text: "Looking." },
      ],
      toolCalls: [
        { id: "first", name: "look", arguments: "{}" },
        { id: "call_2", name: "look", arguments: '{"n":2}' },
      ],
      stopReason: "tool_calls",
      usage: { totalTokens: 3 },
    });
    const deltas = (await eventsOf(run)).filter((event) => event.type === "tool-call-delta");
    expect(deltas[0]).toMatchObject({ type: "tool-call-delta", round: 1, index: 1, name: "look", arguments: '{"n":' });
  });

  test("skips a delta of an unknown kind", async () => {
    const model = streamOf(async function* () {
      yield { type: "weather", text: "sunny" } as never;
      yield { type: "text-delta", text: "Fine." };
      yield { type: "finish", stopReason: "stop" };
    });
    const session = await runSessionLoop(asking(), someAgent(), { model });
    expect(session.transcript.at(-1)?.message.content).toBe("Fine.");
  });
});
