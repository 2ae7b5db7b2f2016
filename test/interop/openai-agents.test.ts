import { type AgentInputItem, MemorySession } from "@openai/agents";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkeinSession } from "../../src/interop/openai-agents/index.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

const text = fc.string({ maxLength: 12 });
const id = fc.stringMatching(/^[a-z]{1,6}$/);
const kept = { providerData: fc.constantFrom({}, { note: "as it was" }) };
const output = fc.oneof(
  text,
  fc.record({ type: fc.constant("text"), text }),
  fc.array(
    fc.oneof(
      fc.record({ type: fc.constant("input_text"), text }),
      fc.record({ type: fc.constant("input_image"), image: text }),
    ),
  ),
);
const item = fc.oneof(
  fc.record({ type: fc.constant("message"), role: fc.constantFrom("user", "system"), content: text, ...kept }),
  fc.record({
    role: fc.constant("user"),
    content: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("input_text"), text, ...kept }),
        fc.record({ type: fc.constant("input_image"), image: text }),
      ),
    ),
  }),
  fc.record({
    type: fc.constant("message"),
    role: fc.constant("assistant"),
    status: fc.constant("completed"),
    content: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("output_text"), text }),
        fc.record({ type: fc.constant("refusal"), refusal: text }),
      ),
    ),
  }),
  fc.record({
    type: fc.constant("function_call"),
    callId: fc.oneof(id, fc.constant("")),
    name: id,
    arguments: fc.json(),
    status: fc.constant("completed"),
  }),
  fc.record({
    type: fc.constant("function_call_result"),
    callId: id,
    name: id,
    status: fc.constant("completed"),
    output,
  }),
  fc.record({
    type: fc.constant("reasoning"),
    content: fc.array(fc.record({ type: fc.constant("input_text"), text })),
    ...kept,
  }),
  fc.record({ type: fc.constant("hosted_tool_call"), name: id, output: text }),
) as fc.Arbitrary<AgentInputItem>;
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("add" as const), items: fc.array(item, { maxLength: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pop" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("get" as const),
      limit: fc.option(fc.integer({ min: -1, max: 6 }), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const) }) },
);

describe("a session of the OpenAI Agents SDK on a Skein store", () => {
  test("returns the same as the SDK's memory session, for any operations", async () => {
    const run = async (operations: readonly (typeof operation extends fc.Arbitrary<infer T> ? T : never)[]) => {
      const memory = new MemorySession();
      const skein = new SkeinSession(openMemoryStore(), { sessionId: "a-session" });
      for (const asked of operations) {
        const results = await Promise.all(
          [memory, skein].map((session) => {
            if (asked.do === "add") return session.addItems(asked.items);
            if (asked.do === "get") return session.getItems(asked.limit);
            return asked.do === "pop" ? session.popItem() : session.clearSession();
          }),
        );
        expect(results[1]).toEqual(results[0]);
      }
      expect(await skein.getItems()).toEqual(await memory.getItems());
    };
    await fc.assert(fc.asyncProperty(fc.array(operation, { minLength: 500, maxLength: 500, size: "max" }), run), {
      numRuns: 2,
    });
    await fc.assert(fc.asyncProperty(fc.array(operation, { maxLength: 20 }), run), { numRuns: 100 });
  });

  test("keeps popped and cleared items in the log, and finds them", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "a-session", userId: "ann" });
    await session.addItems([{ role: "user", content: "where is the giraffe?" }]);
    expect(await session.popItem()).toMatchObject({ content: "where is the giraffe?" });
    await session.addItems([{ role: "user", content: "where is the zebra?" }]);
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    const entries: Entry[] = [];
    for await (const entry of store.read("a-session")) entries.push(entry);
    expect(entries.map(({ type }) => type)).toEqual(["message", "leaf", "message", "leaf"]);
    expect((await store.search("giraffe", { userId: "ann" })).length).toBe(1);
  });

  test("stores calls and results as turns", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "a-session" });
    await session.addItems([
      { type: "function_call", callId: "c1", name: "look_up", arguments: '{"word":"skein"}' },
      {
        type: "function_call_result",
        callId: "c1",
        name: "look_up",
        status: "completed",
        output: { type: "text", text: "a yarn" },
      },
    ]);
    const turns: unknown[] = [];
    for await (const entry of store.read("a-session")) if (entry.type === "message") turns.push(entry.message);
    expect(turns).toMatchObject([
      { role: "assistant", toolCalls: [{ id: "c1", name: "look_up", arguments: '{"word":"skein"}' }] },
      { role: "tool", toolCallId: "c1", content: [{ type: "text", text: "a yarn" }] },
    ]);
  });

  test("records the usage of a run once for each answer, in the sums and not as an item", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "hike", userId: "ann" });
    await session.addItems([{ type: "message", role: "user", content: "Which way?" }]);
    const response = (responseId: string, inputTokens: number) => ({
      responseId,
      providerData: { model: "gpt-5-mini" },
      usage: {
        inputTokens,
        outputTokens: 10,
        totalTokens: inputTokens + 10,
        inputTokensDetails: [{ cached_tokens: 20 }],
      },
    });
    const result = { rawResponses: [response("r1", 100), response("r2", 120)] };
    await session.recordUsage(result);
    await session.recordUsage(result);
    const usage = { inputTokens: 220, outputTokens: 20, totalTokens: 240, cacheReadTokens: 40 };
    const head = await store.head("hike");
    expect(head).toMatchObject({ usage, path: { model: { provider: "openai", modelId: "gpt-5-mini" } } });
    expect(head?.cost).toBeGreaterThan(0);
    expect(await store.aggregate({ groupBy: ["model"], userId: "ann" })).toMatchObject([
      {},
      { model: "openai/gpt-5-mini", usage },
    ]);
    expect(await session.getItems()).toHaveLength(1);
    expect(await session.popItem()).toMatchObject({ content: "Which way?" });
    await session.recordUsage({ rawResponses: [response("r3", 1)] }, { model: "acme/own" });
    expect((await store.head("hike"))?.usage.totalTokens).toBe(251);
  });

  test("refuses to record a value that is not the result of a run, and stores nothing of it", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "hike" });
    for (const wrong of [undefined, {}, { rawResponses: [{}] }, { rawResponses: [{ usage: { inputTokens: -1 } }] }]) {
      await expect(session.recordUsage(wrong as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    const refused = session.recordUsage({ rawResponses: [{ usage }] }, { model: "no-provider" });
    await expect(refused).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(await store.head("hike")).toBeNull();
  });

  test("forks: neither session affects the other afterwards", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "a session: that needs another id" });
    await session.addItems([{ role: "user", content: "one" }]);
    const fork = await session.fork({ sessionId: "the-fork" });
    await fork.addItems([{ role: "user", content: "two" }]);
    await session.popItem();
    expect((await fork.getItems()).map((found) => "content" in found && found.content)).toEqual(["one", "two"]);
    expect(await session.getItems()).toEqual([]);
    expect(await session.getSessionId()).toBe("a session: that needs another id");
  });

  test("returns each item to only one of several concurrent pops", async () => {
    const store = openMemoryStore();
    const open = () => new SkeinSession(store, { sessionId: "a-session" });
    await open().addItems(Array.from({ length: 12 }, (_, index) => ({ role: "user" as const, content: `${index}` })));
    const popped = await Promise.all(Array.from({ length: 12 }, () => open().popItem()));
    const texts = popped.map((found) => (found !== undefined && "content" in found ? Number(found.content) : -1));
    expect(texts.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, index) => index));
  });

  test("refuses items of an unsupported form, and stores nothing of them", async () => {
    const store = openMemoryStore();
    const session = new SkeinSession(store, { sessionId: "a-session" });
    const good = { role: "user", content: "one" };
    for (const items of [good, [good, "two"], [good, { text: "two" }], [null]])
      await expect(session.addItems(items as unknown as AgentInputItem[])).rejects.toMatchObject({
        code: "DRIVER_VERSION",
        message: expect.stringContaining("docs/from-openai-agents.md"),
      });
    expect(await session.getItems()).toEqual([]);
    expect(await store.head("a-session")).toBeNull();
  });
});
