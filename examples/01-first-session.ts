// The first session: two turns in an SQLite file, a second try of the answer, and what the model would be sent next.
// #region readme
import { createTree, openStore } from "skein";

const store = await openStore("sqlite:./sessions.db");
const tree = await createTree(store, { userId: "user-1" });

const question = await tree.appendMessage({ role: "user", content: "Name a prime above 90." });
await tree.appendMessage({ role: "assistant", content: "91 is a prime." });

await tree.branch(question.id); // back to the question; the first answer stays on its own branch
await tree.appendMessage({ role: "assistant", content: "97 is a prime." });

const { messages } = await tree.buildContext(); // what the next request to a model holds
console.log(messages.map(({ role, content }) => `${role}: ${content}`).join("\n"));
await store.close();
// #endregion

import assert from "node:assert/strict";
import { openTree } from "skein";

assert.deepEqual(
  messages.map(({ content }) => content),
  ["Name a prime above 90.", "97 is a prime."],
);

// Another process, another day: everything is still there, the branch that was left included.
await using again = await openStore("sqlite:./sessions.db");
const reopened = await openTree(again, tree.id);
const [root] = await reopened.getTree();
assert.equal(root?.children.length, 2);
assert.equal(reopened.leafId, tree.leafId);
