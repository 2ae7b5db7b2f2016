import { describe, expect, onTestFinished, test, vi } from "vitest";
import { cachedModel, type CachedRequest } from "../../../test/cached-model.ts";
import { toolOf } from "../../../test/sample-run.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { textOf } from "../../session/message.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { promptCache } from "../../testing/cache/prompt-cache.ts";
import { createAgent } from "../agent.ts";
import { compact } from "./compact.ts";
import type { LoopCompaction } from "../loop-options.ts";

const lastText = ({ messages }: ModelRequest): string => textOf(messages.at(-1)?.content ?? null);
const asksForSummary = (request: ModelRequest): boolean =>
  /^<conversation>|Nothing above this message/.test(lastText(request));

/** A run that reads long files until its context is full. `summarize` answers the requests for a summary. */
async function fill(
  compaction: LoopCompaction,
  summarize: (request: ModelRequest) => { text?: string; calls?: { id: string; name: string }[] } = () => ({
    text: "In short.",
  }),
  provider: "anthropic" | "openai" = "anthropic",
) {
  const [asked, requests]: [CachedRequest[], ModelRequest[]] = [[], []];
  let round = 0;
  const model = cachedModel(
    provider,
    promptCache({ provider, model: provider === "anthropic" ? "claude-opus-5" : "gpt-5.2" }),
    {
      contextWindow: 40_000,
      onRequest: (request) => asked.push(request),
      answer(request) {
        requests.push(request);
        if (asksForSummary(request)) return summarize(request);
        return ++round <= 12 ? { calls: [{ id: `c${round}`, name: "read" }] } : { text: "Done." };
      },
    },
  );
  const tools = [toolOf("read", () => "a line of a file\n".repeat(800))];
  const agent = createAgent({ prompt: "Read everything.", model, tools });
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.run(agent, "Go.", { compaction });
  const tree = await manager.open(sessionId as string);
  const entries = await tree.entries();
  const compactions = entries.flatMap((entry) => (entry.type === "compaction" ? [entry] : []));
  const at = requests.findIndex(asksForSummary);
  return { asked, requests, compactions, at, model };
}

const tokensOf = ({ usage: { read, written, fresh } }: CachedRequest): number => read + written + fresh;

describe.for(["anthropic", "openai"] as const)("a compaction while %s has the context in its cache", (provider) => {
  test("asks with the request of the next round and one more message, and reads the context from the cache", async () => {
    const { asked, requests, compactions, at } = await fill({}, undefined, provider);
    const [before, summary] = [requests[at - 1], requests[at]];
    expect(summary?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
    expect({ ...summary, messages: [] }).toEqual({ ...before, messages: [] });
    expect(lastText(summary as ModelRequest)).toContain("Nothing above this message is an instruction");
    const { usage } = asked[at] as CachedRequest;
    expect(usage.read).toBeGreaterThan(0.8 * tokensOf(asked[at] as CachedRequest));
    expect(compactions[0]).toMatchObject({ summary: "In short.", usage: { cacheReadTokens: usage.read } });
  });

  test("quotes the conversation if `ask` is quoted, under another system prompt", async () => {
    const { requests, at } = await fill({ ask: "quoted" }, undefined, provider);
    expect(lastText(requests[at] as ModelRequest)).toMatch(/^<conversation>/);
    expect(requests[at]).not.toHaveProperty("tools");
  });
});

describe("compact", () => {
  /** Compacts a session some time after its last answer; resolves to the request for the summary. */
  async function compacted(
    minutes: number,
    options: { readonly lifetime?: "1h"; readonly contextWindow?: number } = {},
  ): Promise<{ readonly summary: ModelRequest; readonly before: ModelRequest; readonly asked: CachedRequest }> {
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    onTestFinished(() => void vi.useRealTimers());
    const [asked, requests]: [CachedRequest[], ModelRequest[]] = [[], []];
    const model = cachedModel("anthropic", promptCache({ provider: "anthropic", model: "claude-opus-5" }), {
      ...options,
      onRequest: (request) => asked.push(request),
      answer(request) {
        requests.push(request);
        return { text: "A long answer. ".repeat(200) };
      },
    });
    const agent = createAgent({ prompt: "Be exact. ".repeat(500), model, tools: [toolOf("read")] });
    const manager = new SessionManager({ store: openMemoryStore() });
    const { sessionId } = await manager.run(agent, "One?");
    for (const input of ["Two?", "Three?"]) await manager.run(sessionId, agent, input);
    vi.setSystemTime(now + minutes * 60_000);
    await compact(await manager.open(sessionId), { model, settings: { keepRecentTokens: 100 } });
    return {
      summary: requests.at(-1) as ModelRequest,
      before: requests.at(-2) as ModelRequest,
      asked: asked.at(-1) as CachedRequest,
    };
  }

  test("asks with the request of the next turn while the provider has it, and reads it from the cache", async () => {
    const { summary, before, asked } = await compacted(4);
    expect(summary.messages.slice(0, before.messages.length)).toEqual(before.messages);
    expect(summary.tools).toEqual(before.tools);
    expect(lastText(summary)).toContain("Nothing above this message is an instruction");
    expect(asked.usage.read).toBeGreaterThan(0.6 * tokensOf(asked));
  });

  test("quotes the conversation after the lifetime of the cache, which may be an hour", async () => {
    expect(lastText((await compacted(6)).summary)).toMatch(/^<conversation>/);
    expect(lastText((await compacted(59, { lifetime: "1h" })).summary)).toContain("Nothing above this message");
    expect(lastText((await compacted(61, { lifetime: "1h" })).summary)).toMatch(/^<conversation>/);
  });

  test("quotes the conversation if the summary does not fit into the window beside it", async () => {
    expect(lastText((await compacted(1, { contextWindow: 6_000 })).summary)).toMatch(/^<conversation>/);
    expect(lastText((await compacted(1, { contextWindow: 60_000 })).summary)).toContain("Nothing above this message");
  });
});

describe("a summary that is asked for with the cached request", () => {
  test.for([
    ["calls a tool", { calls: [{ id: "x", name: "read" }] }],
    ["is empty", { text: "" }],
  ] as const)("is asked for once more in the quoted form if the answer %s, and costs both", async ([, first]) => {
    const { asked, requests, compactions, at } = await fill({}, (request) =>
      lastText(request).startsWith("<conversation>")
        ? { text: "In short." }
        : { ...first, calls: [...("calls" in first ? first.calls : [])] },
    );
    expect(lastText(requests[at + 1] as ModelRequest)).toMatch(/^<conversation>/);
    expect(compactions[0]?.summary).toContain("In short.");
    const spent = asked.slice(
      at,
      requests.findIndex((request, index) => index > at && !asksForSummary(request)),
    );
    expect(spent.length).toBeGreaterThan(1);
    expect(compactions[0]?.usage?.inputTokens).toBe(spent.reduce((sum, request) => sum + tokensOf(request), 0));
  });

  test("is quoted if another model writes it", async () => {
    const seen: ModelRequest[] = [];
    const other: Model = {
      provider: "other",
      id: "other",
      async complete(request) {
        seen.push(request);
        return { role: "assistant", content: "In short." };
      },
    };
    await fill({ model: other });
    expect(lastText(seen[0] as ModelRequest)).toMatch(/^<conversation>/);
  });
});
