import { describe, expect, test, vi } from "vitest";
import { user } from "../../../test/sample-log.ts";
import { asking, callOf, calling, inShort, someAgent, toolOf } from "../../../test/sample-run.ts";
import { scripted, type ScriptedModel } from "../../models/scripted.ts";
import { compactionMessage } from "../../session/context/context.ts";
import type { ContextPruner } from "../../session/context/context-pruner.ts";
import type { Message } from "../../session/message.ts";
import { RelevanceContextPruner } from "../../session/context/relevance-context-pruner.ts";
import { Session } from "../../session/value/session.ts";
import { assistantRow, Transcript, userRow } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import {
  type ContextInfo,
  type ContextTransform,
  pruneContext,
  questionOf,
  transformContext,
} from "./context-transform.ts";
import type { LoopOptions } from "../loop-options.ts";
import { ModelError } from "../model/model-error.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { SessionRun } from "../session-run.ts";

const look = toolOf("look", () => "seen");
const looking = (id: string) => calling(callOf(id, "look"));
const asked = (model: ScriptedModel, index: number) => model.requests[index]?.messages.map(inShort);
const system: Message = { role: "system", content: "Be brief." };
const info: ContextInfo = {
  sessionId: "s",
  round: 1,
  query: "refund",
  question: null,
  signal: new AbortController().signal,
};

/** Three old turns, one about a refund, and a new question. */
const talk = (): Session =>
  Session.of(
    Transcript.of([
      userRow("My refund is late."),
      assistantRow([], "I see."),
      userRow("Nice weather."),
      assistantRow([], "It is."),
      userRow("When is the refund due?"),
    ]),
  );

function running(
  replies: Parameters<typeof scripted>[0],
  context: readonly ContextTransform[],
  more: Partial<LoopOptions> = {},
) {
  const model = scripted(replies);
  const run = runSessionLoop(talk(), someAgent(), {
    model,
    tools: [look],
    context,
    retry: { baseDelayMs: 0 },
    ...more,
  });
  return { model, run };
}

describe("in a run, a context transform", () => {
  test("changes the messages of every request, but neither the transcript nor the log", async () => {
    const store = openMemoryStore();
    const lastOnly: ContextTransform = (messages) => messages.filter(({ role }) => role === "user").slice(-1);
    const { model, run } = running([looking("a"), "Tomorrow."], [lastOnly], { persist: store });
    const session = await run;
    expect(asked(model, 0)).toEqual(["user: When is the refund due?"]);
    expect(asked(model, 1)).toEqual(["user: When is the refund due?"]);
    expect(session.transcript.rows.map(({ message }) => inShort(message))).toEqual([
      "user: My refund is late.",
      "assistant: I see.",
      "user: Nice weather.",
      "assistant: It is.",
      "user: When is the refund due?",
      "assistant: [look]",
      "tool: seen",
      "assistant: Tomorrow.",
    ]);
    expect((await store.head(session.id))?.messageCount).toBe(8);
  });

  test("receives the result of the previous one, also if that is asynchronous", async () => {
    const first: ContextTransform = async (messages) => {
      await new Promise((resolve) => setImmediate(resolve));
      return [...messages, user("first")];
    };
    const second: ContextTransform = (messages) => [...messages.slice(-1), user("second")];
    const { model, run } = running(["Tomorrow."], [first, second]);
    await run;
    expect(asked(model, 0)).toEqual(["user: first", "user: second"]);
  });

  test("receives the session, the round, the latest and the first question, and the signal", async () => {
    const told: ContextInfo[] = [];
    const steering: { run?: SessionRun } = {};
    const { run } = running(
      [looking("a"), "Tomorrow."],
      [
        async (messages, given) => {
          told.push(given);
          if (given.round === 1) await steering.run?.steer("And the fee?");
          return messages;
        },
      ],
    );
    steering.run = run;
    const session = await run;
    expect(told.map(({ sessionId, round, query }) => [sessionId, round, query])).toEqual([
      [session.id, 1, "When is the refund due?"],
      [session.id, 2, "And the fee?"],
    ]);
    expect(told.map(({ question }) => question?.content)).toEqual(Array(2).fill("When is the refund due?"));
    expect(told[0]?.signal).toBeInstanceOf(AbortSignal);
    expect(Object.isFrozen(told[0])).toBe(true);
  });

  test("that separates a call from its result is repaired", async () => {
    const withoutResults: ContextTransform = (messages) => messages.filter(({ role }) => role !== "tool");
    const { model, run } = running([looking("a"), "Tomorrow."], [withoutResults]);
    await run;
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", toolCallId: "a", isError: true });
    const withoutCalls: ContextTransform = (messages) => messages.filter((message) => !("toolCalls" in message));
    const { model: other, run: otherRun } = running([looking("a"), "Tomorrow."], [withoutCalls]);
    await otherRun;
    expect(asked(other, 1)?.at(-1)).toBe("user: When is the refund due?");
  });

  test("is not called again when a request is retried, but is when the context was compacted", async () => {
    const rounds: number[] = [];
    const counting: ContextTransform = (messages, { round }) => {
      rounds.push(round);
      return messages;
    };
    const busy = new ModelError("overloaded", "Busy.", { provider: "sample" });
    await running([busy, "Tomorrow."], [counting]).run;
    expect(rounds).toEqual([1]);
    const overflow = new ModelError("context_overflow", "Too long.", { provider: "sample" });
    const settings = { tokenizer: (text: string) => text.length };
    const { model, run } = running(
      [overflow, "Tomorrow."],
      [counting, pruneContext(new RelevanceContextPruner(), { maxTurns: 1 })],
      {
        compaction: { settings, model: scripted(["In short."]) },
      },
    );
    await run;
    expect(rounds).toEqual([1, 1, 1]);
    expect(asked(model, 1)).toEqual([
      "system: Be brief.",
      expect.stringContaining("In short."),
      "user: When is the refund due?",
    ]);
  });

  test("that fails ends the run with its error, before a request is sent", async () => {
    const failure = new Error("No idea.");
    const { model, run } = running(
      ["Tomorrow."],
      [
        () => {
          throw failure;
        },
      ],
    );
    await expect(run).rejects.toBe(failure);
    expect(model.requests).toEqual([]);
    expect(run.transcript.length).toBe(5);
  });

  test("that never ends does not keep a run from being aborted", async () => {
    const begun = deferred();
    const { run } = running(
      ["Tomorrow."],
      [
        () => {
          begun.resolve();
          return new Promise(() => {});
        },
      ],
    );
    await begun.promise;
    run.abort("enough");
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  });

  test("that waits for its own run gets an error", async () => {
    const own: { run?: SessionRun } = {};
    const { run } = running(
      ["Tomorrow."],
      [
        async (messages) => {
          await new Promise((resolve) => setImmediate(resolve));
          await own.run;
          return messages;
        },
      ],
    );
    own.run = run;
    await expect(run).rejects.toMatchObject({ code: "DEADLOCK" });
  });

  test.for<{ name: string; made: unknown; says: RegExp }>([
    { name: "nothing", made: undefined, says: /^Context transform 1 gave no list of messages\.$/ },
    { name: "a text", made: "hello", says: /gave no list of messages/ },
    { name: "an empty list", made: [], says: /^The context transforms left no message to send; keep at least one\.$/ },
    {
      name: "what is no message",
      made: [{ role: "user" }],
      says: /^Context transform 1 gave a message that cannot be sent: .*content.*\.$/,
    },
    { name: "a role that is none", made: [{ role: "developer", content: "x" }], says: /cannot be sent/ },
  ])("that gives $name ends the run with a refusal that says so", async ({ made, says }) => {
    const { model, run } = running(["Tomorrow."], [() => made as Message[]]);
    await expect(run).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringMatching(says) });
    expect(model.requests).toEqual([]);
  });

  test.for([{ context: "prune" }, { context: [1] }, { context: null }, { context: {} }])(
    "is a function in a list, and not %j",
    ({ context }) => {
      const options = { model: scripted([]), context } as unknown as LoopOptions;
      expect(() => runSessionLoop(asking(), someAgent(), options)).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining("context") }),
      );
    },
  );
});

describe("without a context transform", () => {
  test.for([{ context: undefined }, { context: [] }])(
    "messages that are not read are not assembled: %j",
    async (given) => {
      const iterate = vi.spyOn(Transcript.prototype, Symbol.iterator);
      const options = given.context === undefined ? {} : { context: given.context };
      const executor = { complete: async () => ({ role: "assistant" as const, content: "Done." }) };
      await runSessionLoop(talk(), someAgent(), { executor, builtInTools: false, ...options });
      const read = iterate.mock.calls.length;
      iterate.mockRestore();
      expect(read).toBe(0);
    },
  );

  test("a request has the messages of the time at which it was created, also if they are read later", async () => {
    const model = scripted([looking("a"), "Done."]);
    await runSessionLoop(talk(), someAgent(), { model, tools: [look] });
    expect(asked(model, 0)?.at(-1)).toBe("user: When is the refund due?");
    expect(asked(model, 1)?.slice(-2)).toEqual(["assistant: [look]", "tool: seen"]);
  });
});

describe("pruneContext", () => {
  const pruner = new RelevanceContextPruner();

  test("sends the relevant earlier messages, and everything since the question", async () => {
    const context = [pruneContext(pruner, { maxTurns: 3 })];
    const { model, run } = running([looking("a"), looking("b"), "Tomorrow."], context);
    await run;
    expect(asked(model, 0)).toEqual(["system: Be brief.", "user: My refund is late.", "user: When is the refund due?"]);
    // The run's own rows take all the room there is, and more.
    expect(asked(model, 2)).toEqual([
      "system: Be brief.",
      "user: When is the refund due?",
      "assistant: [look]",
      "tool: seen",
      "assistant: [look]",
      "tool: seen",
    ]);
  });

  test("keeps the question with which the run started when the run is steered", async () => {
    const steering: { run?: SessionRun } = {};
    const steerOnce: ContextTransform = async (messages, { round }) => {
      if (round === 1) await steering.run?.steer("Hurry.");
      return messages;
    };
    const { model, run } = running([looking("a"), "Tomorrow."], [steerOnce, pruneContext(pruner, { maxTurns: 1 })]);
    steering.run = run;
    await run;
    expect(asked(model, 1)).toEqual([
      "system: Be brief.",
      "user: When is the refund due?",
      "assistant: [look]",
      "tool: seen",
      "user: Hurry.",
    ]);
  });

  test("keeps its choice while the rest fits, then chooses again with room for more requests", async () => {
    const past = Array.from({ length: 10 }, (_, index) => user(`refund ${index}`));
    const prune = pruneContext(pruner, { maxTurns: 8 });
    const question = user("refund?");
    const run: Message[] = [];
    const sent: string[] = [];
    for (let round = 0; round < 8; round++) {
      const made = await prune([system, ...past, question, ...run], { ...info, question, query: "refund?" });
      expect(made.length).toBeLessThanOrEqual(Math.max(8, run.length + 2));
      sent.push(made.map(({ content }) => content).join());
      run.push({ role: "assistant", content: `step ${round}` });
    }
    const breaks = sent.filter((text, index) => index > 0 && !text.startsWith(sent[index - 1] as string)).length;
    // Each request has one message more, so that a choice without room would be made again for each.
    expect(breaks).toBe(3);
  });

  test("keeps its choice in the next run, whose messages are read again", async () => {
    const past = Array.from({ length: 6 }, (_, index) => user(`refund ${index}`));
    const prune = pruneContext(pruner, { maxTurns: 6 });
    const ask = async (messages: readonly Message[]): Promise<readonly Message[]> =>
      prune(messages, { ...info, question: messages.at(-1) as Message });
    await ask([system, ...past, user("one?")]);
    // Chooses again, with room for more requests.
    const [one, two, three] = [user("one?"), user("two?"), user("three?")];
    const before = await ask([system, ...past, one, { role: "assistant", content: "yes" }, two]);
    const copies = [system, ...past, one, { role: "assistant", content: "yes" } as const, two].map((each) => ({
      ...each,
    }));
    const after = await ask([...copies, three]);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.at(-1)).toBe(three);
  });

  test("keeps the summary of a compaction, right after the instructions", async () => {
    const messages = [system, compactionMessage("In short."), user("weather"), user("refund"), user("when?")];
    const prune = pruneContext(pruner, { maxTurns: 4 });
    expect(await prune(messages, info)).toEqual([system, messages[1], messages[3], messages[4]]);
    expect(await prune(messages.slice(1), { ...info, query: "" })).toEqual(messages.slice(1));
  });

  test("uses the latest user message as the question if the original is no longer there", async () => {
    const messages = [user("refund a"), user("refund b"), user("when?")];
    const prune = pruneContext(pruner, { maxTurns: 1 });
    expect(await prune(messages, { ...info, question: user("gone") })).toEqual([messages[2]]);
  });

  test("prunes everything if there is no question", async () => {
    const messages: Message[] = [system, { role: "assistant", content: "refund" }, { role: "assistant", content: "x" }];
    expect(await pruneContext(pruner, { maxTurns: 2 })(messages, info)).toEqual(messages.slice(0, 2));
  });

  test("also enforces a token budget, with the given tokenizer", async () => {
    const messages = [system, user("refund refund refund"), user("refund"), user("when?")];
    const countTokens = (text: string) => text.length;
    const counting = new RelevanceContextPruner({ countTokens });
    const tokens = (maxTokens: number) =>
      pruneContext(counting, { maxTurns: 10, maxTokens, countTokens })(messages, info);
    // The instructions are 9 long, the question 5.
    expect(await tokens(20)).toEqual([system, messages[2], messages[3]]);
    expect(await tokens(40)).toEqual(messages);
    expect(await tokens(0)).toEqual([system, messages[3]]);
  });

  test("works with any pruner, and passes it the earlier messages, the query and the remaining limits", async () => {
    const seen: unknown[] = [];
    const any: ContextPruner = {
      async prune(...given) {
        seen.push(given);
        return [];
      },
    };
    const messages = [user("a"), user("b"), user("when?")];
    expect(await pruneContext(any, { maxTurns: 5, maxTokens: 50 })(messages, info)).toEqual([messages[2]]);
    expect(seen).toEqual([[[messages[0], messages[1]], "refund", 4, { maxTokens: 48 }]]);
  });

  test.for([
    { pruner: {}, limits: { maxTurns: 1 } },
    { pruner: null, limits: { maxTurns: 1 } },
    { pruner, limits: undefined },
    { pruner, limits: {} },
    { pruner, limits: { maxTurns: -1 } },
    { pruner, limits: { maxTurns: 1.5 } },
    { pruner, limits: { maxTurns: 1, maxTokens: -1 } },
  ])("refuses invalid limits: $limits", ({ pruner: given, limits }) => {
    expect(() => pruneContext(given as ContextPruner, limits as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  });
});

describe("the parts of a pipeline", () => {
  test("leave an empty context empty", async () => {
    expect(await transformContext([], [(messages) => messages], info)).toEqual([]);
  });

  test("get a copy of the list of messages, so that they cannot change it", async () => {
    const messages = [user("a"), user("b")];
    await transformContext(messages, [(given) => (given as Message[]).splice(0, 1)], info);
    expect(messages).toHaveLength(2);
  });

  test("find the question of a transcript before answers and summaries", () => {
    const rows = [userRow("a"), userRow("b"), assistantRow([], "c")];
    expect(questionOf(Transcript.of(rows))?.content).toBe("b");
    const { content } = compactionMessage("In short.");
    expect(questionOf(Transcript.of([userRow(content as string)]))).toBeNull();
    expect(questionOf(Transcript.empty)).toBeNull();
  });

  test("receive an empty query if the latest question has no text", async () => {
    const queries: string[] = [];
    const telling: ContextTransform = (messages, { query }) => {
      queries.push(query);
      return messages;
    };
    const picture: Message = { role: "user", content: [{ type: "image", mediaType: "image/png", data: "" }] };
    await transformContext([user("a"), picture], [telling], info);
    await transformContext([system], [telling], info);
    expect(queries).toEqual(["", ""]);
  });
});

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
