// The OpenAI Agents SDK on a Skein store: its session can be forked and searched, and popped items stay in the log.
// The model is a function here, so no API key is needed.
import assert from "node:assert/strict";
import { Agent, type Model, Runner, Usage } from "@openai/agents";
import { openStore } from "skein";
import { SkeinSession } from "skein/openai-agents";

/** Answers with the number of its input items. */
const counting: Model = {
  async getResponse({ input }) {
    const text = `I heard ${typeof input === "string" ? 1 : input.length}.`;
    const content = [{ type: "output_text" as const, text }];
    return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
  },
  async *getStreamedResponse() {},
};

await using store = await openStore("sqlite:agents.db");
const session = new SkeinSession(store, { sessionId: "hike", userId: "ann" });
const agent = new Agent({ name: "Guide", model: counting });
const runner = new Runner({ tracingDisabled: true });

await runner.run(agent, "Which way to the lake?", { session });
const { finalOutput } = await runner.run(agent, "And how far?", { session });
assert.equal(finalOutput, "I heard 3.");

// A fork is independent.
const fork = await session.fork({ sessionId: "hike-by-night" });
await runner.run(agent, "In the dark, too?", { session: fork });
assert.deepEqual([(await session.getItems()).length, (await fork.getItems()).length], [4, 6]);

// Popped, and still found by a search.
await session.popItem();
await session.popItem();
assert.equal((await session.getItems()).length, 2);
const hits = await store.search('"how far"', { userId: "ann" });
assert.deepEqual(hits.map(({ head }) => head.header.id).sort(), ["hike", "hike-by-night"]);
console.log(`${hits.length} sessions ask how far it is.`);
