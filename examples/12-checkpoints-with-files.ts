// Checkpoints with files: restoring one restores the conversation and the workspace together.
import assert from "node:assert/strict";
import { createAgent, createHeader, openStore, openTree, Session } from "skein";
import { CheckpointManager } from "skein/lifecycle";
import { offline } from "skein/offline";
import { localBackend } from "skein/sandbox";

await using store = await openStore("sqlite:./checkpoints.db");
const { header } = await store.create(createHeader({ userId: "user-1" }));
const sandbox = await localBackend.open({});
const planOf = async () => new TextDecoder().decode(await sandbox.readFile("plan.txt"));

// An agent that writes files, in the same workspace and the same session each time.
const agent = createAgent({ prompt: "You keep a small workspace.", model: offline() });
const ask = (text: string) =>
  agent.run(Session.fromUserMessage(text).bindSandbox(sandbox), { persist: { store, sessionId: header.id } });
await ask('write "go by train" to plan.txt');

// A checkpoint is a position in the log and, with a sandbox, a snapshot of its files.
const checkpoints = new CheckpointManager(store, { maxPerSession: 3 });
const good = await checkpoints.create(header.id, { metadata: { why: "a plan that works" }, sandbox });
const { turns } = await checkpoints.restore(good.id);

await ask('write "go by boat, and sink" to plan.txt');
await ask('write "swim" to plan-b.txt');
assert.equal(await planOf(), "go by boat, and sink");

// Two checkpoints with files can be compared: changed files, and the content of small texts.
const later = await checkpoints.create(header.id, { sandbox });
const { changes } = (await checkpoints.compareFiles(good.id, later.id)) ?? { changes: [] };
assert.deepEqual(changes, [
  { path: "plan-b.txt", change: "added", after: "swim" },
  { path: "plan.txt", change: "changed", before: "go by train", after: "go by boat, and sink" },
]);

// Reading a checkpoint changes nothing; with the sandbox, its files are restored, and later ones removed.
const then = await checkpoints.restore(good.id, { sandbox });
assert.deepEqual(then.turns, turns);
assert.equal(await planOf(), "go by train");
assert.equal(await sandbox.exists("plan-b.txt"), false);

// The conversation continues from there, too: the leaf moves, and no entry is deleted.
const tree = await openTree(store, header.id);
const before = tree.version;
await tree.branch(good.leafId);
await ask("read plan.txt");
const context = await tree.buildContext();
assert.ok(!JSON.stringify(context.messages).includes("boat"));
assert.ok(tree.version > before);

// The number of checkpoints is limited: the oldest is deleted, with its snapshot.
for (let i = 0; i < 3; i++) await checkpoints.create(header.id, { sandbox });
const kept = await checkpoints.list(header.id);
assert.equal(kept.length, 3);
assert.ok(!kept.some(({ id }) => id === good.id));
for (const { id } of kept) await checkpoints.delete(id);
await sandbox.close();
console.log(`Back at "${then.turns.at(-1)?.content}" with the files of then; ${tree.version} entries, none erased.`);
