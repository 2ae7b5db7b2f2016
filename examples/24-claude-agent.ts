// The Claude Agent SDK on a Skein store. The SDK itself, with the program that it starts, is not installed for this example:
// its calls of a session store are made by hand. No API key needed.
import assert from "node:assert/strict";
import { openStore } from "skein";
import { SkeinSessionStore } from "skein/claude-agent";

await using store = await openStore("sqlite:claude.db");
const sessionStore = new SkeinSessionStore(store);

// With the SDK:
//   for await (const message of query({ prompt: "Where is the kettle?", options: { sessionStore } })) …
//   for await (const message of query({ prompt: "And the cups?", options: { sessionStore, resume: sessionId } })) …
const key = { projectKey: "-home-ann-kitchen", sessionId: "0198c2a4-9c1f-7cc0-8d60-51a7a9a2b0f1" };
const question = {
  type: "user",
  uuid: "0198c2a4-a000-7000-8000-000000000001",
  message: { role: "user", content: "Where is the kettle?" },
};
const answer = {
  type: "assistant",
  uuid: "0198c2a4-a000-7000-8000-000000000002",
  parentUuid: question.uuid,
  message: { role: "assistant", model: "a-model", content: [{ type: "text", text: "In the shed." }] },
};
await sessionStore.append(key, [question, answer]);
// The SDK retries when it got no result: nothing is stored twice.
await sessionStore.append(key, [question, answer]);

// A resume begins with this, on any machine with access to the store.
assert.deepEqual(await sessionStore.load(key), [question, answer]);
assert.equal((await sessionStore.listSessions(key.projectKey)).length, 1);

const [hit] = await store.search("kettle shed");
assert.equal(hit?.head.header.id, sessionStore.sessionIdOf(key));
console.log(`Found in ${hit.head.header.cwd}: ${hit.matches.map(({ text }) => text).join(" ")}`);
