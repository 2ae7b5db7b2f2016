// The life of a support session: created, suspended, answered by an agent, restored to a checkpoint, closed; other users have no access.
import assert from "node:assert/strict";
import { createAgent, openManager, openStore } from "skein";
import { scripted } from "skein/offline";

await using store = await openStore("sqlite:./support.db");
const lessons: string[] = [];
let today = new Date();

await using manager = await openManager({
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

// Calls for a user name the user: other users' sessions are indistinguishable from missing ones.
const actor = `customer-${Date.now()}`;
const { sessionId } = await manager.create({ userId: actor, metadata: { channel: "chat" } }, { actor });
assert.equal(await manager.getState(sessionId, { actor: "someone-else" }), null);

// Turns that the program itself adds. A turn id makes a retry idempotent.
const question = { turnId: "q1", role: "user", content: "Where is order 4711?" } as const;
await manager.addTurn(sessionId, question, { actor });
await manager.addTurn(sessionId, question, { actor });
await manager.addTurn(
  sessionId,
  { role: "assistant", content: "On its way.", tokensUsed: 12, cost: 0.0001 },
  { actor },
);
const [checkpoint] = await store.listCheckpoints(sessionId); // created by the manager, after two turns
assert.ok(checkpoint !== undefined);

// A suspended session rejects turns.
await manager.suspend(sessionId, { actor });
await assert.rejects(manager.addTurn(sessionId, { role: "user", content: "Hello?" }), { code: "SESSION_SUSPENDED" });
await manager.resume(sessionId, { actor });

// An agent answers. Every row is stored before the run continues; a second run would have to wait.
const agent = createAgent({
  name: "clerk",
  prompt: "Answer briefly.",
  model: scripted(["It is lost, sorry.", "It arrives on Friday."]),
  builtInTools: false,
});
await manager.run(sessionId, agent, "When will it be here?", { actor });

// That answer was wrong: restore the checkpoint, and run again. Nothing is deleted, and the cost of both answers counts.
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

// At most two open sessions. One that was idle for an hour has expired and does not count.
await manager.create({ userId: actor });
const { sessionId: forgotten } = await manager.create({ userId: actor });
await assert.rejects(manager.create({ userId: actor }), { code: "CAPACITY" });
today = new Date(today.getTime() + 3_601_000);
assert.equal((await manager.getState(forgotten))?.status, "expired");
await manager.create({ userId: actor });

await manager.settled(); // the consolidator runs after the close and does not delay it
console.log(lessons.join("\n"));
assert.equal(lessons[0], "4 turns, the last one: It arrives on Friday.");
assert.equal(lessons.length, 3);
