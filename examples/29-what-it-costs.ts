// Shows how much prompt caches saved for the answers of a session, and why one answer saved less. The cache is emulated by the
// provider's documented rules, so the program needs no key.
import assert from "node:assert/strict";
import { createAgent, defineTool, openManager } from "skein";
import { anthropic } from "skein/anthropic";
import { explainCache } from "skein/context";
import { promptCache } from "skein/testing";

const provider = promptCache({ provider: "anthropic", model: "claude-opus-5" });
/** A client that answers each request with the usage that the provider would report. */
const client = {
  messages: {
    async create(body: { readonly messages?: readonly unknown[] }) {
      const { read, written, fresh } = provider.ask(JSON.parse(JSON.stringify(body)));
      const asked = JSON.stringify(body.messages?.at(-1));
      const text = { type: "text", text: "The checkout test fails." };
      const call = { type: "tool_use", id: `call-${body.messages?.length}`, name: "run_tests", input: {} };
      return {
        type: "message",
        model: "claude-opus-5",
        content: asked.includes("tool_result") ? [text] : [call],
        stop_reason: asked.includes("tool_result") ? "end_turn" : "tool_use",
        usage: {
          input_tokens: fresh,
          output_tokens: 10,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written,
        },
      };
    },
  },
};
const { stream: _, ...model } = anthropic("claude-opus-5", { client });

const runTests = defineTool({
  name: "run_tests",
  description: "Runs the tests.",
  parameters: { type: "object" },
  effects: "reads",
  execute: () => `${"ok\n".repeat(5_000)}1 failed: checkout`,
});
const agent = createAgent({ name: "tester", prompt: "You find out why tests fail.", model, tools: [runTests] });

// #region costs
await using manager = await openManager({ store: "memory:" });
const { sessionId } = await manager.run(agent, "Which tests fail?");
await manager.run(sessionId, agent, "Run them again.");

const tree = await manager.open(sessionId);
const results = (await tree.getBranch()).filter((entry) => entry.type === "message" && entry.message.role === "tool");
const [first] = results;
assert.ok(first !== undefined);
console.log(await tree.previewEdit(first.id)); // what each later request saves, and what the cache loses once
await tree.omit(first.id, { reason: "an old test run" });
await manager.run(sessionId, agent, "And now?");

const { rewriteFactor, causes, answers } = await explainCache(manager.store, sessionId);
console.log(rewriteFactor, causes);
for (const { inputTokens, expectedTokens, readTokens, cause } of answers)
  console.log(inputTokens, expectedTokens, readTokens, cause?.type ?? "as expected");
// #endregion

assert.deepEqual(
  answers.map(({ cause }) => cause?.type ?? null),
  ["first", null, null, null, "edit", null],
);
