// Forks and checkpoints: positions in a log, not copies of it.
import assert from "node:assert/strict";
import { createHeader, createTree, openStore, openTree } from "skein";

await using store = await openStore("sqlite:./sessions.db");
const tree = await createTree(store, { userId: "user-1" });
await tree.appendMessage({ role: "user", content: "Draft a reply to the customer." }, { id: "ask" });
await tree.appendMessage({ role: "assistant", content: "Dear customer, …" }, { id: "draft" });
await tree.setVariables({ tone: "formal" });

// A checkpoint is the present position in the log; it costs the same at turn 10 and at turn 10,000.
const here = { sessionId: tree.id, version: tree.version, leafId: tree.leafId };
await store.saveCheckpoint({
  id: "before-the-jokes",
  ...here,
  createdAt: new Date().toISOString(),
  parentCheckpointId: null,
  metadata: { reason: "the customer liked this one" },
});

await tree.setVariables({ tone: "funny" });
await tree.appendMessage({ role: "assistant", content: "Knock, knock!" });
assert.deepEqual((await tree.buildContext()).variables, { tone: "funny" });

// Back to the checkpoint: the leaf moves, the variables follow the path, nothing is deleted.
const checkpoint = await store.loadCheckpoint("before-the-jokes");
assert.ok(checkpoint !== null);
await tree.branch(checkpoint.leafId);
const restored = await tree.buildContext();
assert.deepEqual(restored.variables, { tone: "formal" });
assert.equal(restored.messages.length, 2);

// A fork shares the log up to an entry, by reference. Later changes of either do not affect the other.
const fork = await store.fork(tree.id, createHeader({ userId: "user-2" }), { at: "draft" });
const forked = await openTree(store, fork.header.id);
await forked.appendMessage({ role: "user", content: "Shorter, please." });
assert.equal(fork.header.forkedFrom?.version, 2);
assert.equal((await forked.getBranch()).length, 3);
assert.equal(await store.getEntry(tree.id, forked.leafId ?? ""), null);

// Deleting the source does not affect the fork, and can be undone.
assert.equal(await store.delete(tree.id), true);
assert.equal((await forked.buildContext()).messages.length, 3);
assert.equal(await store.undelete(tree.id), true);
const { items } = await store.list({ parentId: tree.id });
assert.deepEqual(
  items.map((head) => head.header.id),
  [forked.id],
);
console.log(`Session ${tree.id} has ${tree.version} entries and one fork.`);
