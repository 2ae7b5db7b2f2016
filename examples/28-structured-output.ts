// A run that ends with a checked, typed value: the model calls a tool, gives a wrong value, gets an error, and corrects it.
import assert from "node:assert/strict";
import { createAgent, defineTool } from "skein";
import { offline, scripted } from "skein/offline";
import { z } from "zod";

const Invoice = z.object({
  number: z.string(),
  total: z.number().min(0),
  due: z.iso.date().transform((day) => new Date(day)), // the parsed value need not be JSON
});

const readMail = defineTool({
  name: "read_mail",
  description: "Returns the latest mail.",
  parameters: { type: "object", properties: {} },
  effects: "reads",
  execute: () => "Invoice 4711, 12.50, to be paid by 1 March 2026.",
});

// Scripted replies. With openai("…") or anthropic("…"), the provider's own schema feature is used.
const model = scripted([
  { role: "assistant", content: null, toolCalls: [{ id: "1", name: "read_mail", arguments: "{}" }] },
  '{"number":"4711","total":"12.50","due":"2026-03-01"}',
  '{"number":"4711","total":12.5,"due":"2026-03-01"}',
]);
const clerk = createAgent({ prompt: "You read the mail.", model, tools: [readMail], builtInTools: false });

const answer = await clerk.run("What is to be paid?", { output: Invoice });
const { number, total, due } = answer.output; // typed by the schema
console.log(`Invoice ${number}: ${total.toFixed(2)}, due ${due.toDateString()}`);

assert.equal(total, 12.5);
assert.equal(due.getUTCFullYear(), 2026);
assert.match(String(answer.transcript.at(-2)?.message.content), /answer\.total is refused: .*expected number/);

// A model that never returns a valid value fails the run; its messages stay in the session.
const stubborn = createAgent({ prompt: "", model: scripted(["No.", "No."]), builtInTools: false });
const run = stubborn.run("What is to be paid?", { output: Invoice, outputRetries: 1 });
await assert.rejects(run.synchronize(), { code: "OUTPUT_INVALID" });
assert.equal(run.transcript.rows.filter((row) => row.kind === "assistant").length, 2);

// Without an API key and network: the smallest value that fits.
const { output } = await createAgent({ prompt: "", model: offline() }).run("?", {
  output: { type: "object", properties: { age: { type: "integer", minimum: 18 } }, required: ["age"] },
});
assert.deepEqual(output, { age: 18 });
