// Branching: a coding agent's session in a file, with branches, labels, a summary of an abandoned branch, and pruning.
import assert from "node:assert/strict";
import { SessionTree } from "skein";
import type { SessionHooks } from "skein/lifecycle";

const moves: string[] = [];
const hooks: SessionHooks = { tree: ({ fromId, targetId }) => void moves.push(`${fromId} -> ${targetId}`) };

await using tree = await SessionTree.create(process.cwd(), { directory: "./sessions", hooks });
await tree.appendMessage({ role: "user", content: "Make the parser faster." }, { id: "task" });
assert.equal(tree.persisted, false, "nothing is written before the model has answered");

await tree.appendMessage({ role: "assistant", content: "I rewrote it with a lookup table." }, { id: "table" });
assert.equal(tree.persisted, true);

// Try something else from the same question, with a summary of the abandoned branch.
await tree.branchWithSummary("task", "A lookup table was 2 % faster and 400 lines longer.");
await tree.appendMessage({ role: "assistant", content: "I cached the tokens; it is twice as fast." }, { id: "cache" });
await tree.setLabel("cache", "the one we keep");
assert.deepEqual(moves, ["table -> task"]);

// A branch from before the root: an unrelated question in the same session.
await tree.branch(null);
await tree.appendMessage({ role: "user", content: "What is a lookup table?" }, { id: "aside" });
assert.deepEqual(
  (await tree.getTree()).map((root) => root.entry.id),
  ["task", "aside"],
);

// Back to the main branch. The side branch is hidden permanently; the log still contains it.
await tree.branch("cache");
await tree.pruneBranch("table");
assert.deepEqual(
  (await tree.getBranch()).map(({ type }) => type),
  ["message", "branch_summary", "message"],
);
assert.ok((await tree.getChildren("task")).every(({ id }) => id !== "table"));
await assert.rejects(tree.pruneBranch("task"), { code: "ACTIVE_PATH" });
await assert.rejects(tree.branch("nowhere"), { code: "UNKNOWN_ENTRY" });

// Only this path, as a separate session, with the same entry ids and labels.
await using clean = await tree.createBranchedSession("cache");
assert.equal(await clean.getLabel("cache"), "the one we keep");
assert.deepEqual(clean.header.lineage.parents, [tree.id]);

// The most recent session of this project, as an agent would continue it tomorrow.
await using recent = await SessionTree.continueRecent(process.cwd(), { directory: "./sessions" });
assert.ok([tree.id, clean.id].includes(recent.id));
console.log(`${tree.path} holds ${tree.version} entries.`);
