import { describe, expect, test } from "vitest";
import { cachedModel, type CachedRequest } from "../../../test/cached-model.ts";
import { toolOf } from "../../../test/sample-run.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { textOf } from "../../session/message.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { promptCache } from "../../testing/cache/prompt-cache.ts";
import { createAgent } from "../agent.ts";
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
