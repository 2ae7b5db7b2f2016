// The life of a support session: opened, paused, answered by an agent, taken back a step, closed; others are kept out.
import assert from "node:assert/strict";
import { createAgent, openStore, SessionManager } from "skein";
import { scripted } from "skein/offline";

await using store = await openStore("sqlite:./support.db");
const lessons: string[] = [];
let today = new Date();

await using manager = new SessionManager({
  store,
  config: {
    maxSessionsPerUser: 2,
    sessionTtl: 3600,
    autoCheckpointInterval: 2,
    defaultSystemPrompt: "Help with orders.",
  },
  consolidator: {
    consolidate: ({ turns }) => lessons.push(`${turns.length} turns, the last one: ${turns.at(-1)?.content ?? "none"}`),
  },
  clock: () => today,
});
manager.events.on("closed", ({ reason, durationSeconds }) =>
  console.log(`closed (${reason}) after ${durationSeconds} s`),
);

// A user's request names the user: whatever is not theirs is not there for them.
const actor = `customer-${Date.now()}`;
const { sessionId } = await manager.create({ userId: actor, metadata: { channel: "chat" } }, { actor });
assert.equal(await manager.getState(sessionId, { actor: "someone-else" }), null);

// Turns that the program itself adds. A turn id makes a retry safe.
const question = { turnId: "q1", role: "user", content: "Where is order 4711?" } as const;
await manager.addTurn(sessionId, question, { actor });
await manager.addTurn(sessionId, question, { actor });
await manager.addTurn(
  sessionId,
  { role: "assistant", content: "On its way.", tokensUsed: 12, cost: 0.0001 },
  { actor },
);
const [checkpoint] = await store.listCheckpoints(sessionId); // made by the manager, after two turns
assert.ok(checkpoint !== undefined);

// While it is suspended it takes no turns, and says so.
await manager.suspend(sessionId, { actor });
await assert.rejects(manager.addTurn(sessionId, { role: "user", content: "Hello?" }), { code: "SESSION_SUSPENDED" });
await manager.resume(sessionId, { actor });

// An agent answers. Every row is stored before the run goes on; a second run would have to wait for its turn.
const agent = createAgent({
  name: "clerk",
  prompt: "Answer briefly.",
  model: scripted(["It is lost, sorry.", "It arrives on Friday."]),
  builtInTools: false,
});
await manager.run(sessionId, agent, "When will it be here?", { actor });

// That answer was wrong: back to the checkpoint, and once more. Nothing is erased, and both answers were paid for.
await manager.restore(checkpoint.id, { actor });
const answer = await manager.run(sessionId, agent, "When will it be here?", { actor, ifBusy: "enqueue" });
assert.equal(answer.text(), "It arrives on Friday.");
const state = await manager.getState(sessionId, { actor });
for (const turn of state?.turns ?? []) console.log(`${turn.role}: ${turn.content}`);
assert.equal(state?.turnCount, 4);

await manager.close(sessionId, { actor, reason: "solved" });
await assert.rejects(manager.addTurn(sessionId, { role: "user", content: "One more thing …" }), {
  code: "SESSION_CLOSED",
});

// Two open sessions at most. One that was idle for an hour has expired and does not count any more.
await manager.create({ userId: actor });
const { sessionId: forgotten } = await manager.create({ userId: actor });
await assert.rejects(manager.create({ userId: actor }), { code: "CAPACITY" });
today = new Date(today.getTime() + 3_601_000);
assert.equal((await manager.getState(forgotten))?.status, "expired");
await manager.create({ userId: actor });

await manager.settled(); // the consolidator works after the close, and never holds it up
console.log(lessons.join("\n"));
assert.equal(lessons[0], "4 turns, the last one: It arrives on Friday.");
assert.equal(lessons.length, 3);
