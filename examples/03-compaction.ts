// Compaction: a long conversation fits the context window again; nothing is lost, and it can be undone.
import assert from "node:assert/strict";
import { SessionTree } from "skein";
import { compact, contextTokens, prepareCompaction, shouldCompact } from "skein/context";
import { offline } from "skein/offline";

const tree = await SessionTree.inMemory();
for (let turn = 1; turn <= 50; turn++) {
  await tree.appendMessage({ role: "user", content: `Question ${turn}: ${"please explain ".repeat(20)}` });
  await tree.appendMessage({ role: "assistant", content: `Answer ${turn}: ${"it is like this ".repeat(20)}` });
}

// Compact when the context leaves too little of the window for an answer.
const settings = { reserveTokens: 2_000, keepRecentTokens: 1_000 };
const tokens = contextTokens(await tree.contextEntries());
assert.ok(shouldCompact(tokens, 8_000, settings));

// A preview: the plan is a pure function.
const plan = prepareCompaction(await tree.contextEntries(), settings);
assert.ok(plan !== null && plan.keep.length > 0);
console.log(`${tokens} tokens: ${plan.summarize.length} entries would be summarised, ${plan.keep.length} kept.`);

// Compact, with any model that can write a summary.
const compaction = await compact(tree, { model: offline(), settings });
assert.ok(compaction !== null);
const context = await tree.buildContext();
assert.ok(context.messages.length < 20);
assert.match(String(context.messages[0]?.content), /summary/);
console.log(`The next request holds ${context.messages.length} messages instead of 100.`);

// The log still has every turn, and the compaction can be undone.
assert.equal((await tree.getBranch()).length, 101);
await tree.undoCompaction();
assert.equal((await tree.buildContext()).messages.length, 100);

// A hook can write the summary itself, or cancel.
await assert.rejects(
  compact(tree, {
    model: offline(),
    settings,
    hooks: { beforeCompact: () => ({ cancel: true, reason: "not during a demo" }) },
  }),
  { code: "CANCELLED" },
);
