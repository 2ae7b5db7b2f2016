import { describe, expect, test } from "vitest";
import {
  asking,
  callOf,
  calling,
  collectWarnings,
  inShort,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { usage } from "../../test/sample-log.ts";
import { scripted } from "../models/scripted.ts";
import { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { assistantRow, systemRow, toolResultRow, Transcript, userRow } from "../session/value/transcript.ts";
import { createAgent } from "./agent.ts";
import type { ModelReply, ModelRequest } from "./model/model.ts";
import { runSessionLoop } from "./run-session-loop.ts";

const look = toolOf("look");
const looking = (id = "a"): ModelReply => calling(callOf(id, "look"));
const asked = (request: ModelRequest | undefined) => request?.messages.map(inShort);

describe("a request", () => {
  test("is the agent's rows, then the user's, then the messages so far", async () => {
    const agent = Session.of(Transcript.of([systemRow("Be brief."), userRow("An example?"), assistantRow([], "Yes.")]));
    const model = scripted([looking(), "Done."]);
    await runSessionLoop(asking("Hello."), agent, { model, tools: [look] });
    const first = ["system: Be brief.", "user: An example?", "assistant: Yes.", "user: Hello."];
    expect(asked(model.requests[0])).toEqual(first);
    expect(asked(model.requests[1])).toEqual([...first, "assistant: [look]", "tool: done"]);
  });

  test("has the parameters of the loop and the schemas of its tools in every round", async () => {
    const model = scripted([looking(), "Done."]);
    const parameters = {
      temperature: 0.5,
      maxOutputTokens: 100,
      stop: ["END"],
      thinkingLevel: "low",
      providerOptions: { seed: 7 },
    } as const;
    await runSessionLoop(asking(), someAgent(), { model, tools: [look], builtInTools: false, ...parameters });
    expect(model.requests).toHaveLength(2);
    for (const request of model.requests) expect(request).toMatchObject({ ...parameters, tools: [look.schema] });
    expect(model.requests[0]).not.toHaveProperty("toolChoice");
  });

  test.each([
    ["required", undefined],
    [{ name: "look" }, undefined],
    ["auto", "auto"],
    ["none", "none"],
  ] as const)("asks for the tool choice %j in the first round and for %j after it", async (toolChoice, later) => {
    const model = scripted([looking(), "Done."]);
    await runSessionLoop(asking(), someAgent(), { model, tools: [look], toolChoice });
    expect(model.requests.map((request) => request.toolChoice)).toEqual([toolChoice, later]);
  });

  test("is valid for every provider, with any rows of the user", async () => {
    const user = Session.of(
      Transcript.of([
        userRow("One?"),
        assistantRow([callOf("gone", "look")]),
        userRow("Two?"),
        toolResultRow("nobody", "look", "stray"),
        assistantRow([], ""),
      ]),
    );
    const model = scripted(["Done."]);
    await runSessionLoop(user, someAgent(), { model });
    const roles = model.requests[0]?.messages.map(({ role }) => role);
    expect(roles).toEqual(["system", "user", "assistant", "tool", "user"]);
  });

  test("does not change while the run continues", async () => {
    const model = scripted([looking(), "Done."]);
    await runSessionLoop(asking(), someAgent(), { model, tools: [look] });
    expect(asked(model.requests[0])).toEqual(["system: Be brief.", "user: Do it."]);
  });
});

describe("the output", () => {
  test("starts with the user's rows, continues with answers and results, and does not copy the instructions", async () => {
    const user = Session.of(Transcript.of([userRow("One?"), assistantRow([], "One."), userRow("Two?")]));
    const agent = someAgent();
    const session = await runSessionLoop(user, agent, { model: scripted([looking(), "Two."]), tools: [look] });
    expect(shortly(session.transcript)).toEqual([
      "user: One?",
      "assistant: One.",
      "user: Two?",
      "assistant: [look]",
      "tool: done",
      "assistant: Two.",
    ]);
    expect([...session.transcript].slice(0, 3)).toEqual([...user.transcript]);
    expect(session.lineage).toEqual({
      parents: [user.id, agent.id],
      operator: "runSessionLoop",
      kind: "op_session_loop",
      extras: [],
    });
  });

  test("does not change its inputs", async () => {
    const [user, agent] = [asking(), someAgent()];
    const state = () =>
      [user, agent].map(({ id, lineage, transcript, usage: spent, cost, sandbox, sandboxBackend }) =>
        structuredClone({ id, lineage, rows: transcript.rows, spent, cost, sandbox, sandboxBackend }),
      );
    const before = state();
    await runSessionLoop(user, agent, {
      model: scripted([looking(), saying("Done.", { usage: usage(10, 5) })]),
      tools: [look],
    });
    expect(state()).toEqual(before);
  });

  test("has the usage and cost of its own rounds", async () => {
    const replies = [
      { ...looking(), usage: usage(10, 5), cost: 0.25 },
      saying("Done.", { usage: { ...usage(20, 5), cacheReadTokens: 3 }, cost: 0.5 }),
    ];
    const session = await runSessionLoop(asking(), someAgent(), { model: scripted(replies), tools: [look] });
    expect(session.usage).toEqual({ inputTokens: 30, outputTokens: 10, totalTokens: 40, cacheReadTokens: 3 });
    expect(session.cost).toBe(0.75);
    const silent = await runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    expect([silent.usage, silent.cost]).toEqual([null, null]);
  });

  test("records the agent's name on its answers, and none for an agent without a name", async () => {
    const replies = (): ModelReply[] => [looking(), saying("Done.")];
    const authors = async (agentName?: string) => {
      const named = agentName === undefined ? {} : { agentName };
      const session = await runSessionLoop(asking(), someAgent(), {
        model: scripted(replies()),
        tools: [look],
        ...named,
      });
      return session.transcript.toMessages().map(({ agent }) => agent);
    };
    expect(await authors("Ada")).toEqual([undefined, "Ada", undefined, "Ada"]);
    expect(await authors()).toEqual([undefined, undefined, undefined, undefined]);
    const agent = createAgent({ name: "Bo", prompt: "Be brief.", model: scripted(["Hello."]) });
    expect((await agent.run("Hi.")).transcript.at(-1)?.message.agent).toBe("Bo");
  });

  test("is registered during the run, unless `register` is false", async () => {
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    expect(sessionRegistry.active().map(({ id }) => id)).toContain(run.id);
    const session = await run;
    expect(sessionRegistry.active().map(({ id }) => id)).not.toContain(run.id);
    expect(sessionRegistry.get(run.id)).toBe(session);
    const secret = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]), register: false });
    expect(sessionRegistry.get(secret.id)).toBeUndefined();
    await secret;
    const failed = runSessionLoop(asking(), someAgent(), { model: scripted([]) });
    await expect(failed.synchronize()).rejects.toThrow();
    expect(sessionRegistry.active().map(({ id }) => id)).not.toContain(failed.id);
  });
});

describe("a run stops", () => {
  test.each(["stop", "length", "content_filter"] as const)("on %s", async (stopReason) => {
    const model = scripted([saying("That is it.", { stopReason }), "Never asked for."]);
    const session = await runSessionLoop(asking(), someAgent(), { model });
    expect(model.requests).toHaveLength(1);
    expect(session.text()).toBe("That is it.");
    expect(session.lineage.extras).toEqual([]);
  });

  test("on an answer without a stop reason, or with the stop reason of calls but without calls", async () => {
    for (const reply of [
      { role: "assistant", content: "So." },
      saying("So.", { stopReason: "tool_calls" }),
    ] as ModelReply[]) {
      const session = await runSessionLoop(asking(), someAgent(), { model: scripted([reply]) });
      expect(session.text()).toBe("So.");
    }
  });

  test("not on the stop reason of an end if the answer has calls: these run", async () => {
    const model = scripted([{ ...looking(), stopReason: "stop" }, "Done."]);
    const session = await runSessionLoop(asking(), someAgent(), { model, tools: [look] });
    expect(shortly(session.transcript)).toEqual([
      "user: Do it.",
      "assistant: [look]",
      "tool: done",
      "assistant: Done.",
    ]);
  });

  test.each(["length", "content_filter"] as const)(
    "on %s with calls, which may be cut short and do not run",
    async (stopReason) => {
      const ran: unknown[] = [];
      const model = scripted([{ ...looking(), stopReason }]);
      const session = await runSessionLoop(asking(), someAgent(), {
        model,
        tools: [toolOf("look", (args) => ran.push(args))],
      });
      expect(ran).toEqual([]);
      const next = scripted(["Done."]);
      await runSessionLoop(session, someAgent(), { model: next });
      expect(next.requests[0]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool"]);
    },
  );

  test("when its rounds are used up, with a warning and a note in its lineage, without an error", async () => {
    const { messages, settled } = collectWarnings();
    const model = scripted([looking("a"), looking("b"), looking("c")]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [look], maxToolRounds: 2 });
    const session = await run;
    expect(model.requests).toHaveLength(2);
    expect(session.lineage.extras).toEqual([["loop.truncated", true]]);
    expect(run.lineage).toBe(session.lineage);
    expect(shortly(session.transcript).slice(-2)).toEqual(["assistant: [look]", "tool: done"]);
    await settled();
    expect(messages).toEqual([expect.stringMatching(/after 2 rounds with tool calls; raise maxToolRounds/)]);
  });

  test("after 64 rounds by default if a model repeats one call forever", async () => {
    const replies = Array.from({ length: 80 }, () => looking("same"));
    const model = scripted(replies);
    const session = await runSessionLoop(asking(), someAgent(), { model, tools: [look] });
    expect(model.requests).toHaveLength(64);
    expect(session.lineage.extras).toEqual([["loop.truncated", true]]);
    expect(session.transcript.length).toBe(1 + 64 * 2);
    const next = await runSessionLoop(session, someAgent(), { model: scripted(["Enough."]) });
    expect(next.text()).toBe("Enough.");
  });
});

test("calls that share an id, or have none, get a result each, in order", async () => {
  const reply: ModelReply = {
    ...calling(
      callOf("a", "look", { n: 1 }),
      callOf("a", "look", { n: 2 }),
      callOf("a_2", "look", { n: 3 }),
      callOf("", "look", { n: 4 }),
    ),
    providerData: { blocks: ["with the old ids"] },
  };
  const session = await runSessionLoop(asking(), someAgent(), {
    model: scripted([reply, "Done."]),
    tools: [toolOf("look", (args) => (args as { n: number }).n)],
  });
  const [, answer, ...results] = session.transcript.toMessages();
  const ids = answer?.role === "assistant" ? answer.toolCalls?.map(({ id }) => id) : [];
  expect(ids).toEqual(["a", "a_2", "a_2_2", "call_4"]);
  expect(answer).not.toHaveProperty("providerData");
  expect(results.slice(0, 4)).toMatchObject([
    { toolCallId: "a", content: "1" },
    { toolCallId: "a_2", content: "2" },
    { toolCallId: "a_2_2", content: "3" },
    { toolCallId: "call_4", content: "4" },
  ]);
});

test("open calls at the end of a session without a recorded state are answered and not run", async () => {
  const ran: unknown[] = [];
  const user = Session.of(
    Transcript.of([
      userRow("Look."),
      assistantRow([callOf("a", "look"), callOf("b", "look")]),
      toolResultRow("b", "look", "seen"),
    ]),
  );
  const model = scripted(["Done."]);
  const session = await runSessionLoop(user, someAgent(), { model, tools: [toolOf("look", () => ran.push(1))] });
  expect(ran).toEqual([]);
  expect(session.transcript.at(3)?.message).toMatchObject({ role: "tool", toolCallId: "a", isError: true });
  expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "tool"]);
});

test("an agent accepts a text or content, and options of a run override its own", async () => {
  const agent = createAgent({ prompt: "Be brief.", model: scripted(["One.", "Two."]), temperature: 1 });
  const session = await agent.run("Hi.");
  expect(session.lineage.parents).toHaveLength(2);
  expect(shortly(session.transcript)).toEqual(["user: Hi.", "assistant: One."]);
  const model = scripted(["Other."]);
  const other = await agent.run([{ type: "text", text: "Hi again." }], { model, temperature: 0 });
  expect(other.text()).toBe("Other.");
  expect(model.requests[0]?.temperature).toBe(0);
});
