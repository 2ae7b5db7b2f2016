import { describe, expect, test } from "vitest";
import { usage } from "../../../test/sample-log.ts";
import {
  asking,
  callOf,
  calling,
  collectWarnings,
  eventsOf,
  inShort,
  modelOf,
  nextEvent,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../../test/sample-run.ts";
import { scripted, type ScriptedModel, type ScriptedReply } from "../../models/scripted.ts";
import { acceptable } from "../../session/context/context.ts";
import { textOf } from "../../session/message.ts";
import { Session } from "../../session/value/session.ts";
import { assistantRow, Transcript, userRow } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import type { LoopCompaction, LoopOptions } from "../loop-options.ts";
import { ModelError } from "../model/model-error.ts";
import { runSessionLoop } from "../run-session-loop.ts";

/** A text of n letters counts as n tokens. */
const settings = { keepRecentTokens: 20, reserveTokens: 100, tokenizer: (text: string) => text.length };
const retry = { baseDelayMs: 0 };
const overflow = new ModelError("context_overflow", "Too long.", { provider: "sample", status: 400 });

/** Two old turns and a new question. */
const talk = (): Session =>
  Session.of(
    Transcript.of([
      userRow("An old question?"),
      assistantRow([], "An old answer."),
      userRow("Another old question?"),
      assistantRow([], "Another old answer."),
      userRow("What about now?"),
    ]),
  );

const summaries = (...replies: readonly ScriptedReply[]): ScriptedModel => scripted(replies);

/** A run whose first answer reports a full context, so that it is compacted before the second. */
function filling(
  compaction: LoopCompaction | false,
  replies: readonly ScriptedReply[] = ["Done."],
  options: Partial<LoopOptions> = {},
) {
  const first = { ...calling(callOf("a", "look")), usage: usage(950, 10) };
  const model = scripted([first, ...replies], { contextWindow: 1000 });
  const run = runSessionLoop(talk(), someAgent(), {
    model,
    tools: [toolOf("look", () => "seen")],
    compaction: compaction === false ? false : { settings, ...compaction },
    retry,
    ...options,
  });
  return { run, model };
}

const asked = (model: ScriptedModel, index: number) => model.requests[index]?.messages.map(inShort) ?? [];
const SUMMARY =
  /^user: The conversation before this point was replaced by this summary:\n\n<summary>\nIn short\.\n<\/summary>$/;

describe("before a request that might not fit", () => {
  test("the older part is replaced by a summary in the context, and stays in the transcript", async () => {
    const model = summaries(saying("In short.", { usage: usage(40, 2), cost: 0.5 }));
    const { run, model: main } = filling({ model });
    const session = await run;
    expect(asked(main, 1)).toEqual([
      "system: Be brief.",
      expect.stringMatching(SUMMARY),
      "user: What about now?",
      "assistant: [look]",
      "tool: seen",
    ]);
    expect(acceptable([...(main.requests[1]?.messages ?? [])])).toEqual(main.requests[1]?.messages);
    expect(shortly(session.transcript)).toHaveLength(8);
    expect(shortly(session.transcript)[0]).toBe("user: An old question?");
    const event = (await eventsOf(run)).find(({ type }) => type === "compaction");
    expect(event).toMatchObject({
      type: "compaction",
      round: 2,
      entryId: expect.any(String),
      summary: "In short.",
      firstKeptEntryId: session.transcript.at(4)?.id,
      tokensBefore: expect.any(Number),
    });
    expect(session.usage?.totalTokens).toBe(960 + 42);
    expect(session.cost).toBe(0.5);
  });

  test("nothing is done if the context fits, if compaction is disabled, or if the window is unknown", async () => {
    const model = summaries();
    const roomy = scripted([{ ...calling(callOf("a", "look")), usage: usage(800) }, "Done."], { contextWindow: 1000 });
    const options = { tools: [toolOf("look")], compaction: { settings, model } };
    await runSessionLoop(talk(), someAgent(), { ...options, model: roomy });
    expect(asked(roomy, 1)).toHaveLength(8);
    expect(asked(filling(false).model, 1)).toEqual([]);
    const off = filling(false);
    await off.run;
    expect(asked(off.model, 1)).toHaveLength(8);
    const unknown = scripted([{ ...calling(callOf("a", "look")), usage: usage(999_999) }, "Done."]);
    await runSessionLoop(talk(), someAgent(), { ...options, model: unknown });
    expect(asked(unknown, 1)).toHaveLength(8);
    expect(model.requests).toHaveLength(0);
  });

  test("nothing is done when there is nothing to summarise", async () => {
    const model = summaries();
    const main = scripted(["Done."], { contextWindow: 10 });
    const session = await runSessionLoop(asking("A question of many, many, many words?"), someAgent(), {
      model: main,
      compaction: { settings: { ...settings, keepRecentTokens: 500 }, model },
    });
    expect(session.text()).toBe("Done.");
    expect(model.requests).toHaveLength(0);
  });

  test("the run's own model writes the summary by default, with the caller's instructions", async () => {
    const { run, model } = filling({ instructions: "Keep the names." }, ["In short.", "Done."]);
    expect((await run).text()).toBe("Done.");
    expect(asked(model, 1).at(-1)).toMatch(/Also: Keep the names\.$/);
    expect(asked(model, 2)[1]).toMatch(SUMMARY);
  });

  test("a handler can cancel the compaction, and is not called again in every round", async () => {
    let times = 0;
    const hooks = {
      beforeCompact: () => {
        times += 1;
        return { cancel: true as const };
      },
    };
    const more = ["b", "c"].map((id) => calling(callOf(id, "look")));
    const model = summaries();
    const { run, model: main } = filling({ model, hooks }, [...more, "Done."]);
    await run;
    expect(times).toBe(1);
    expect(asked(main, 1)).toHaveLength(8);
    expect(model.requests).toHaveLength(0);
  });

  test("a handler can supply the summary, and handlers are called after the compaction", async () => {
    const heard: unknown[] = [];
    const given = { beforeCompact: () => ({ summary: "In short.", details: { by: "hand" } }) };
    const after = { compact: (event: { sessionId: string; entry: unknown }) => void heard.push(event) };
    const { run, model } = filling({ model: summaries(), hooks: [given, after] });
    const session = await run;
    expect(asked(model, 1)[1]).toMatch(SUMMARY);
    expect(session.usage?.totalTokens).toBe(960);
    expect(heard).toEqual([
      {
        sessionId: session.id,
        entry: expect.objectContaining({ type: "compaction", summary: "In short.", details: { by: "hand" } }),
      },
    ]);
  });

  test("a failed summary is reported, and the request is sent unchanged", async () => {
    const { messages, settled } = collectWarnings();
    const { run, model } = filling({ model: summaries("") });
    expect((await run).text()).toBe("Done.");
    expect(asked(model, 1)).toHaveLength(8);
    await settled();
    expect(messages).toEqual([expect.stringMatching(/^The context of run .* was not compacted: .*empty summary/)]);
  });

  test("details of a handler that cannot be stored are such a failure", async () => {
    const { messages, settled } = collectWarnings();
    const hooks = { beforeCompact: () => ({ summary: "In short.", details: (() => 1) as never }) };
    const { run } = filling({ hooks }, ["Done."], { persist: openMemoryStore() });
    expect((await run).text()).toBe("Done.");
    await settled();
    expect(messages).toEqual([expect.stringMatching(/details is a function/)]);
  });

  test("a summary is retried after a transient failure, and an abort ends it immediately", async () => {
    const busy = new ModelError("server", "Busy.", { provider: "x" });
    const again = filling({ model: summaries(busy, "In short.") });
    await again.run;
    expect(asked(again.model, 1)[1]).toMatch(SUMMARY);
    const hanging = filling({ model: modelOf(() => new Promise(() => {})) });
    await nextEvent(hanging.run, "tool-finished");
    hanging.run.abort("enough");
    await expect(hanging.run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "enough" });
    const asking = filling({ hooks: { beforeCompact: () => new Promise<never>(() => {}) } });
    await nextEvent(asking.run, "tool-finished");
    asking.run.abort("enough");
    await expect(asking.run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "enough" });
  });

  test("a handler that waits for its own run gets an error", async () => {
    const codes: string[] = [];
    const hooks = {
      beforeCompact: async () => {
        await run.synchronize().catch((error: { code: string }) => codes.push(error.code));
        return { summary: "In short." };
      },
    };
    const { run } = filling({ hooks });
    await run;
    expect(codes).toEqual(["DEADLOCK"]);
  });

  test("a second summary builds on the first", async () => {
    const full = { ...calling(callOf("b", "look")), usage: usage(950, 10) };
    const model = summaries("In short.", "Shorter still.");
    const { run, model: main } = filling({ model }, ["Done.", full, "Done again."]);
    await run.followUp("A third question, long enough?");
    await run;
    const [first, second] = model.requests.map((request) => request.messages.map(inShort).join("\n"));
    expect(first).not.toContain("<earlier-summary>");
    expect(second).toContain("<earlier-summary>\nIn short.\n</earlier-summary>");
    expect(second).toContain("What about now?");
    expect(second).not.toContain("An old question?");
    expect(asked(main, 3)).toEqual([
      "system: Be brief.",
      expect.stringContaining("<summary>\nShorter still.\n</summary>"),
      "user: A third question, long enough?",
      "assistant: [look]",
      "tool: seen",
    ]);
  });
});

describe("after a request that was refused as too long", () => {
  test("the context is compacted once and the request is sent again", async () => {
    const model = summaries("In short.");
    const main = scripted([overflow, "Done."]);
    const run = runSessionLoop(talk(), someAgent(), { model: main, compaction: { settings, model } });
    expect((await run).text()).toBe("Done.");
    expect(asked(main, 1)[1]).toMatch(SUMMARY);
    expect((await eventsOf(run)).map(({ type }) => type)).toEqual([
      "run-started",
      "round-started",
      "compaction",
      "text-delta",
      "round-finished",
      "run-finished",
    ]);
  });

  test("a second refusal is the run's error", async () => {
    const again = new ModelError("context_overflow", "Still too long.", { provider: "sample" });
    const main = scripted([overflow, again, "Never asked for."]);
    const run = runSessionLoop(talk(), someAgent(), {
      model: main,
      compaction: { settings, model: summaries("In short.") },
    });
    await expect(run.synchronize()).rejects.toBe(again);
    expect(main.requests).toHaveLength(2);
  });

  test("the refusal is the run's error if compaction is disabled, there is nothing to summarise, or a handler cancels", async () => {
    const cancel = { beforeCompact: () => ({ cancel: true as const }) };
    const cases: [Session, LoopCompaction | false][] = [
      [talk(), false],
      [asking(), { settings }],
      [talk(), { settings, hooks: cancel }],
    ];
    for (const [user, compaction] of cases) {
      const main = scripted([overflow, "Never asked for."]);
      await expect(runSessionLoop(user, someAgent(), { model: main, compaction }).synchronize()).rejects.toBe(overflow);
    }
  });

  test("the refusal is the run's error, with the reason why the compaction failed", async () => {
    const failure = new Error("No pen.");
    const compaction = { settings, model: modelOf(() => Promise.reject(failure)) };
    const run = runSessionLoop(talk(), someAgent(), { model: scripted([overflow]), compaction });
    await expect(run.synchronize()).rejects.toMatchObject({
      kind: "context_overflow",
      message: "Too long.",
      status: 400,
      cause: failure,
    });
  });
});

describe("a stored run", () => {
  test("records the summary, so that the session reopens with the context that the run continued with", async () => {
    const store = openMemoryStore();
    const { run, model } = filling({ model: summaries("In short.") }, ["Done."], { persist: store });
    const session = await run;
    const tree = await SessionTree.on(store, run.id);
    const entry = (await tree.entries()).find(({ type }) => type === "compaction");
    expect(entry).toMatchObject({
      type: "compaction",
      summary: "In short.",
      firstKeptEntryId: session.transcript.at(4)?.id,
    });
    const used = model.requests[1]?.messages.slice(1);
    const reopened = (await tree.buildContext()).messages;
    expect(reopened.slice(0, -1)).toEqual(used);
    expect(inShort(reopened.at(-1) as never)).toBe("assistant: Done.");
  });

  test("calls the hooks of the tree in which it runs", async () => {
    const tree = await SessionTree.inMemory("/project", {
      hooks: [{ beforeCompact: () => ({ summary: "In short." }) }],
    });
    const { run, model } = filling({}, ["Done."], { persist: tree });
    await run;
    expect(asked(model, 1)[1]).toMatch(SUMMARY);
    expect((await tree.buildContext()).messages.slice(0, -1)).toEqual(model.requests[1]?.messages.slice(1));
  });

  test("continues from an existing summary", async () => {
    const tree = await SessionTree.inMemory("/project");
    const first = filling({ hooks: { beforeCompact: () => ({ summary: "In short." }) } }, ["Done."], { persist: tree });
    await first.run;
    const prompts: (string | null)[] = [];
    const hooks = {
      beforeCompact: ({ plan }: { plan: { previousSummary: string | null } }) => {
        prompts.push(plan.previousSummary);
        return { summary: "Shorter still." };
      },
    };
    const main = scripted([{ ...calling(callOf("b", "look")), usage: usage(950) }, "Done again."], {
      contextWindow: 1000,
    });
    const user = await tree.toSession();
    await runSessionLoop(user, someAgent(), {
      model: main,
      tools: [toolOf("look")],
      compaction: { settings, hooks },
      persist: tree,
    });
    expect(asked(main, 0)[1]).toMatch(SUMMARY);
    expect(prompts).toEqual(["In short."]);
    expect(asked(main, 1)[1]).toContain("Shorter still.");
    expect((await tree.buildContext()).messages.slice(0, -1)).toEqual(main.requests[1]?.messages.slice(1));
  });
});

test("the next run on a session starts with the summary of the run before", async () => {
  const long = "x".repeat(4000);
  const small = { ...settings, keepRecentTokens: 5 };
  const model = scripted(["summary of all", saying("first answer"), saying("second answer")], { contextWindow: 1000 });
  const first = await runSessionLoop(asking(long).merge(asking("And now?")), someAgent(), {
    model,
    builtInTools: false,
    compaction: { settings: small },
  });
  const second = await runSessionLoop(first.merge(asking("And then?")), someAgent(), {
    model,
    builtInTools: false,
    compaction: { settings: small },
  });
  expect(model.requests).toHaveLength(3);
  const asked = model.requests[2]?.messages.map((message) => textOf(message.content)) ?? [];
  expect(asked[1]).toContain("summary of all");
  expect(asked.join()).not.toContain(long);
  expect(asked.slice(-2)).toEqual(["first answer", "And then?"]);
  expect(second.transcript.at(0)?.message.content).toBe(long);
});
