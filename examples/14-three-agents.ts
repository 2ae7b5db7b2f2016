// Three agents in one session: a writer, an editor, and a critic whose notes only the editor gets to see. No key needed.
import assert from "node:assert/strict";
import { createAgent, openManager, textOf } from "skein";
import { GroupSession, RoundRobinTurnManager } from "skein/group";
import { openMemoryStore } from "skein/memory";
import { scripted } from "skein/offline";

await using store = openMemoryStore();
const manager = await openManager({ store });
const { sessionId } = await manager.create({ userId: "ann" });

const drafts = scripted(["The cat sat on the mat.", "A cat sat on a mat, at last."]);
const writer = createAgent({ name: "writer", prompt: "You write one sentence.", model: drafts });

// An agent can be any object with a name and an execute function; it gets the turns that it may see.
const seenByCritic: string[] = [];
const critic = {
  name: "critic",
  async execute(_message: string, history: readonly { content: Parameters<typeof textOf>[0] }[]) {
    seenByCritic.push(textOf(history.at(-1)?.content ?? null));
    return seenByCritic.length === 1 ? "Too plain, but do not hurt the writer." : null; // null: it passes
  },
};

const notes = scripted(["Could it end with a surprise?", "Good. We print it."]);
const editor = createAgent({ name: "editor", prompt: "You decide what is printed.", model: notes });

const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(2) });
group.addAgent(writer, "author");
group.addAgent(critic, "critic", { visibleTo: ["editor"] });
group.addAgent(editor, "editor");

const run = group.stream(sessionId, "A sentence about a cat, please.");
for await (const event of run) {
  if (event.type === "agent-finished") console.log(`${event.agent} ${event.kind}: ${event.text}`);
}
const state = await run;

assert.deepEqual(
  state.turns.map(({ agent, role }) => agent ?? role),
  ["user", "writer", "critic", "editor", "writer", "editor"],
);
assert.deepEqual(run.outcome, { reason: "complete" }); // the turn manager ended it after its two rounds
// The editor has read the critic's note; the writer never saw it.
const told = (model: typeof drafts) => JSON.stringify(model.requests[1]?.messages);
assert.match(told(notes), /critic: Too plain/);
assert.doesNotMatch(told(drafts), /Too plain/);
assert.match(told(drafts), /editor: Could it end with a surprise/);

// The state of a group is in the log: another object continues where this one stopped.
const again = new GroupSession({ manager }).addAgent(writer).addAgent(critic).addAgent(editor);
assert.equal((await again.resume(sessionId)).turnCount, state.turnCount);
