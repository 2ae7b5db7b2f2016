// Tools of your own: checked arguments, errors that the model can act on, concurrent calls, and a person's approval.
import assert from "node:assert/strict";
import { createAgent, defineTool, openManager } from "skein";
import { scripted } from "skein/offline";

const stock = new Map([
  ["bolt", 40],
  ["nut", 0],
]);

const findStock = defineTool({
  name: "find_stock",
  description: "Says how many pieces of a part are in stock.",
  parameters: {
    type: "object",
    properties: { part: { type: "string", description: "The part's name." } },
    required: ["part"],
    additionalProperties: false,
  },
  idempotent: true, // a recovered run may call it again
  execute: ({ part }) => {
    const pieces = stock.get(part);
    if (pieces === undefined) throw new Error(`There is no part ${part}; there are: ${[...stock.keys()].join(", ")}.`);
    return { part, pieces };
  },
});

const orderParts = defineTool({
  name: "order_parts",
  description: "Orders more pieces of a part.",
  parameters: {
    type: "object",
    properties: { part: { type: "string" }, pieces: { type: "integer", minimum: 1 } },
    required: ["part", "pieces"],
  },
  needsApproval: ({ pieces }) => pieces > 10, // needs approval: the run waits
  execute: ({ part, pieces }) => {
    stock.set(part, (stock.get(part) ?? 0) + pieces);
    return `Ordered ${pieces} of ${part}.`;
  },
});

// Scripted replies, one for each round. A real model is openai("…") or anthropic("…").
const call = (id: string, name: string, args: unknown) => ({ id, name, arguments: JSON.stringify(args) });
const calls = (...toolCalls: ReturnType<typeof call>[]) =>
  ({ role: "assistant", content: null, toolCalls, stopReason: "tool_calls" }) as const;
const model = scripted([
  calls(
    call("1", "find_stock", { part: "bolt" }),
    call("2", "find_stock", { part: "nut" }),
    call("3", "find_stock", {}),
  ),
  calls(call("4", "find_stock", { part: "screw" })),
  calls(
    call("5", "order_parts", { part: "nut", pieces: 50 }),
    call("6", "order_parts", { part: "bolt", pieces: 5000 }),
  ),
  "50 nuts are on their way; the bolts were not approved.",
]);

const buyer = createAgent({
  name: "buyer",
  prompt: "You keep the stock.",
  model,
  tools: [findStock, orderParts],
  builtInTools: false,
});

await using manager = await openManager();
const run = manager.run(buyer, "Fill up what is missing.");
for await (const event of run) {
  if (event.type === "tool-finished") console.log(`${event.callId}: ${event.message.content}`);
  if (event.type !== "approval-required") continue;
  const { callId, arguments: args } = event.approval;
  if ((args as { pieces: number }).pieces <= 100) await run.approve(callId);
  else await run.deny(callId, "That is far too many.");
}
const answer = await run;
console.log(answer.text());

const results = answer.transcript.rows.filter((row) => row.kind === "tool_result").map((row) => row.message.content);
assert.equal(results[0], '{"part":"bolt","pieces":40}');
assert.match(String(results[2]), /"error_kind":"invalid_tool_arguments".*part/);
assert.match(String(results[3]), /"error_kind":"tool_execution_exception".*there are: bolt, nut/);
assert.equal(results[4], "Ordered 50 of nut.");
assert.match(String(results[5]), /"error_kind":"denied".*far too many/);
assert.deepEqual(
  [...stock],
  [
    ["bolt", 40],
    ["nut", 50],
  ],
);
