// Branches and merges: two attempts at a reply, one merged in full, one as a summary; merging is idempotent.
import assert from "node:assert/strict";
import { createTree, openStore, openTree } from "skein";
import { BranchManager, CheckpointManager, SelectiveMerge, SummaryMerge } from "skein/lifecycle";
import { scripted } from "skein/offline";

await using store = await openStore("sqlite:./branches.db");
const desk = await createTree(store, { userId: "user-1" });
await desk.appendMessage({ role: "user", content: "A customer wants to return a lamp after 40 days." });
await desk.setVariables({ tone: "formal", refund: 0 });
const { id: fromCheckpoint } = await new CheckpointManager(store).create(desk.id);

// Each branch is a separate session, from here or from a checkpoint.
const branches = new BranchManager(store, { maxPerSession: 10 });
const strict = await branches.fork(desk.id, "strict");
const generous = await branches.fork(desk.id, "generous", { fromCheckpoint });

const strictTree = await openTree(store, strict.sessionId);
await strictTree.appendMessage({ role: "assistant", content: "The 30 days are over; we offer a repair." });

const generousTree = await openTree(store, generous.sessionId);
await generousTree.setVariables({ tone: "warm", refund: 20 });
const offer = await generousTree.appendMessage({ role: "assistant", content: "We refund half, as a courtesy." });
await generousTree.appendMessage({ role: "user", content: "(thinking aloud, not for the customer)" });

// Meanwhile the parent changes a variable that the branch has changed, too.
await desk.appendMessage({ role: "user", content: "The customer is on the phone again." });
await desk.setVariables({ tone: "brisk" });

// A dry run previews a merge; nothing is written.
const preview = await branches.merge(desk.id, generous.sessionId, { dryRun: true });
assert.deepEqual(preview.conflicts, [{ key: "tone", parent: "brisk", branch: "warm", base: "formal" }]);
assert.equal(preview.appended.filter(({ type }) => type === "message").length, 2);
assert.equal((await desk.refresh()).path.turnCount, 2);

// One turn of the branch only; then all of it. Existing turns are skipped; merged turns name their origin.
await branches.merge(desk.id, generous.sessionId, { strategy: new SelectiveMerge([offer.id]) });
const { state, appended, skipped } = await branches.merge(desk.id, generous.sessionId);
assert.deepEqual(skipped, [{ turnId: offer.id, reason: "present" }]);
assert.deepEqual(state.variables, { tone: "warm", refund: 20 });
assert.equal(state.turnCount, 4);
assert.deepEqual(state.turns[2]?.metadata.mergedFrom, {
  sessionId: generous.sessionId,
  branchName: "generous",
  turnId: offer.id,
});
assert.equal((await branches.merge(desk.id, generous.sessionId)).appended.length, 0);

// The other attempt is merged as one summary; a branch without new turns needs no model call.
const model = scripted(["A strict reply was drafted: repair instead of a refund."]);
const strategy = new SummaryMerge({ model });
await branches.merge(desk.id, strict.sessionId, { strategy });
assert.deepEqual((await branches.merge(desk.id, strict.sessionId, { strategy })).appended, []);
const { messages } = await desk.buildContext();
assert.match(String(messages.at(-1)?.content), /repair instead of a refund/);

// Any object with a merge method is a strategy.
const verdict = await branches.merge(desk.id, strict.sessionId, {
  strategy: {
    name: "verdict",
    merge: (parent, branch, { newTurns }) => ({
      turns: [{ role: "assistant", content: `${branch.branchName} had ${newTurns.length} turn.` }],
      variables: { decided: parent.turnCount },
    }),
  },
});
assert.equal(verdict.state.turns.at(-1)?.content, "strict had 1 turn.");
console.log(`${appended.length} entries merged; the desk now has ${verdict.state.turnCount} turns.`);
