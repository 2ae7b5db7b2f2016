// The first session: two turns in an SQLite file, a second try of the answer, and what the model would be sent next.
// #region readme
import { createHeader, openStore, SessionTree } from "skein";

const store = await openStore("sqlite:./sessions.db");
const { header } = await store.create(createHeader({ userId: "user-1" }));
const tree = await SessionTree.on(store, header.id);

const question = await tree.appendMessage({ role: "user", content: "Name a prime above 90." });
await tree.appendMessage({ role: "assistant", content: "91 is a prime." });

await tree.branch(question.id); // back to the question; the first answer stays on its own branch
await tree.appendMessage({ role: "assistant", content: "97 is a prime." });

const { messages } = await tree.buildContext(); // what the next request to a model holds
console.log(messages.map(({ role, content }) => `${role}: ${content}`).join("\n"));
await store.close();
// #endregion

import assert from "node:assert/strict";

assert.deepEqual(
  messages.map(({ content }) => content),
  ["Name a prime above 90.", "97 is a prime."],
);

// Another process, another day: everything is still there, the branch that was left included.
await using again = await openStore("sqlite:./sessions.db");
const reopened = await SessionTree.on(again, header.id);
const [root] = await reopened.getTree();
assert.equal(root?.children.length, 2);
assert.equal(reopened.leafId, tree.leafId);
