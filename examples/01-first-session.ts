// The first session: an agent works on the files of a directory, every turn is stored, and a second run continues it.
// #region readme
import { createAgent, openManager } from "skein";

const manager = await openManager({ workspace: "./work" }); // stores sessions in ~/.skein/skein.db
const agent = createAgent({
  name: "helper",
  prompt: "You keep a small workspace.",
  model: "offline/offline", // needs no API key; or "openai/gpt-5-mini", "anthropic/claude-haiku-4-5"
});

const answer = await manager.run(agent, "write hello to a.txt, then run wc -c a.txt"); // a new session
console.log(answer.text());

const next = await manager.run(answer.sessionId, agent, "read a.txt"); // continues the session
console.log(next.text());
// #endregion

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

assert.equal(await readFile("./work/a.txt", "utf8"), "hello");
assert.equal(next.sessionId, answer.sessionId);
assert.deepEqual([next.status, next.questions], ["finished", []]);
await manager[Symbol.asyncDispose]();

// In another process: skein list, skein chat, the studio and every other program use the same store.
await using again = await openManager();
const { items } = await again.list({ cwd: resolve("./work") });
assert.ok(items.some(({ header }) => header.id === answer.sessionId));

// The log without an agent: branch from an earlier entry. Nothing is deleted.
const tree = await again.open(answer.sessionId);
const [question] = (await tree.getBranch()).filter((entry) => entry.type === "message");
assert.ok(question !== undefined);
await tree.branch(question.id);
await tree.appendMessage({ role: "assistant", content: "I would rather not." });
assert.equal((await tree.getChildren(question.id)).length, 2);
assert.equal((await tree.buildContext()).messages.at(-1)?.content, "I would rather not.");
