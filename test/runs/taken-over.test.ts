import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { anthropic } from "../../src/models/anthropic/index.ts";
import { openai } from "../../src/models/openai/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { start } from "../faults/program-support.ts";
import { type PromptCacheUsage, promptCache } from "../../src/testing/cache/prompt-cache.ts";
import { wireFixture } from "../model-server.ts";

type Api = "chat" | "responses" | "messages";

const RESPONSE = JSON.parse(wireFixture("openai", "responses-text.json").toString("utf8"));
const ANSWERS: Readonly<Record<Api, readonly (string | Buffer)[]>> = {
  chat: [wireFixture("openai", "chat-tools.sse.txt"), wireFixture("openai", "chat-text.sse.txt")],
  responses: [
    wireFixture("openai", "responses-tools.sse.txt"),
    `data: ${JSON.stringify({ type: "response.completed", response: RESPONSE })}\n\n`,
  ],
  messages: [wireFixture("anthropic", "tools.sse.txt"), wireFixture("anthropic", "text.sse.txt")],
};

/** A server that records the bytes of requests and what a provider's cache makes of them, and first answers with calls, then with a text. */
async function modelServer(
  api: Api,
): Promise<{ readonly url: string; readonly bodies: string[]; readonly usages: PromptCacheUsage[] }> {
  const bodies: string[] = [];
  const usages: PromptCacheUsage[] = [];
  const provider = api === "messages" ? "anthropic" : "openai";
  const cache = promptCache({ provider, model: "the one of the body" });
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    bodies.push(body);
    usages.push(cache.ask(JSON.parse(body)));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(ANSWERS[api][Math.min(bodies.length, 2) - 1]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, usages };
}

/** The second version: other instructions, other descriptions and parameters of tools, another order, and one tool more. */
function secondVersion(api: Api, baseURL: string) {
  const tools = ["look_up", "send_card", "list_orders", "get_weather", "find_order"].map((name) =>
    defineTool({
      name,
      description: `Now does ${name}.`,
      parameters: { type: "object", additionalProperties: true },
      idempotent: true,
      execute: () => `${name} done`,
    }),
  );
  const model =
    api === "messages"
      ? anthropic("claude-sonnet-4-5", { apiKey: "k", baseURL })
      : openai("gpt-5.2", { apiKey: "k", baseURL, api, cache: true });
  return createAgent({ name: "clerk", prompt: "Second version.", model, tools, builtInTools: false });
}

/**
 * A request as the provider's cache reads it: tools, instructions, messages, without cache markers. `beginning` is
 * the body as it was sent, up to the end of its last message.
 */
function cachedParts(body: string): { readonly before: string; readonly messages: string; readonly beginning: string } {
  const text = body.replaceAll(',"cache_control":{"type":"ephemeral"}', "");
  const parsed = JSON.parse(text);
  const messages = JSON.stringify(parsed.messages ?? parsed.input);
  const beginning = text.slice(0, text.indexOf(messages) + messages.length - 1);
  return { before: JSON.stringify([parsed.tools, parsed.system ?? null]), messages, beginning };
}

test.each<Api>(["chat", "responses", "messages"])(
  "a run that a process with another version of the agent takes over sends %s bodies that begin byte for byte as before",
  async (api) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-taken-over-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "skein.db");
    const { url, bodies, usages } = await modelServer(api);
    const first = start("run-first-version.mjs", [path, api, url]);
    while (first.lines().length === 0 && first.child.exitCode === null) await first.more();
    first.child.kill("SIGKILL");
    await first.ended;

    await using store = await openSqliteStore({ path });
    const [head] = (await store.list({ limit: 1 })).items;
    const manager = new SessionManager({ store });
    const clerk = secondVersion(api, url);
    const recovered = await manager.recover(head?.header.id ?? "", { clerk });
    await recovered?.run;
    expect(bodies).toHaveLength(2);
    const [before, after] = bodies.map(cachedParts) as [ReturnType<typeof cachedParts>, ReturnType<typeof cachedParts>];
    expect(before.before).toContain("get_weather");
    expect(after.before).toBe(before.before);
    expect(before.beginning).toContain(before.messages.slice(0, -1));
    expect(after.beginning.slice(0, before.beginning.length)).toBe(before.beginning);
    expect(after.messages.slice(0, before.messages.length - 1)).toBe(before.messages.slice(0, -1));
    expect(after.messages.length).toBeGreaterThan(before.messages.length);
    // The provider reads all of the first request from its cache; of OpenAI, as far as whole steps of 128 tokens go.
    const [asked, again] = usages as [PromptCacheUsage, PromptCacheUsage];
    const total = asked.read + asked.written + asked.fresh;
    expect(total).toBeGreaterThan(1024);
    expect(again.read).toBe(api === "messages" ? total : total - (total % 128));
    const keys = bodies.map((body) => JSON.parse(body).prompt_cache_key);
    expect(keys[0]).toBe(keys[1]);
    expect(typeof keys[0]).toBe(api === "messages" ? "undefined" : "string");
  },
);
