// Streaming in the terminal: words and tool calls as they arrive, and input from you during the run.
import assert from "node:assert/strict";
import { createAgent, openManager } from "skein";
import { offline } from "skein/offline";

await using manager = await openManager({ workspace: "." });
const agent = createAgent({ name: "helper", prompt: "You keep a small workspace.", model: offline() });

const run = manager.run(agent, "run echo one; echo two");
console.log(`Session ${run.sessionId}`); // known before the first event
const seen: string[] = [];
let steered = false;
for await (const event of run) {
  seen.push(event.type);
  switch (event.type) {
    case "text-delta":
      process.stdout.write(event.text);
      break;
    case "tool-started":
      process.stdout.write(`[${event.name}] `);
      // Delivered before the next request to the model.
      if (!steered) await run.steer("list the files");
      steered = true;
      break;
    case "tool-finished":
      process.stdout.write(`${event.message.content}\n`);
      break;
    case "round-finished":
      process.stdout.write("\n");
      break;
    default:
      break;
  }
}

const answer = await run;
assert.ok(seen.includes("text-delta") && seen.includes("tool-started"));
assert.equal(seen.at(-1), "run-finished");
assert.ok(answer.transcript.rows.some(({ kind, message }) => kind === "user" && message.content === "list the files"));

// An aborted run keeps its messages so far.
const slow = createAgent({ name: "slow", prompt: "You take your time.", model: offline({ delayMs: 60_000 }) });
const unwanted = slow.run("run echo never"); // without a manager: nothing is stored
unwanted.abort("changed my mind");
await assert.rejects(unwanted.synchronize(), { code: "ABORTED", cause: "changed my mind" });
assert.equal(unwanted.transcript.length, 1);
