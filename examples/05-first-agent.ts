// The first agent: it really writes a file and runs a command, in a temporary directory, without an API key or network.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createAgent, openManager, Session } from "skein";

await using manager = await openManager({ workspace: "./office" }); // the directory of its tools
const agent = createAgent({ name: "clerk", prompt: "You keep a small workspace.", model: "offline/offline" });

const answer = await manager.run(agent, 'write "Dear reader" to letter.txt, then run wc -c letter.txt');
for (const { kind, message } of answer.transcript) console.log(`${kind}: ${JSON.stringify(message.content)}`);

const letter = await readFile("./office/letter.txt", "utf8");
console.log(`letter.txt says: ${letter}`);

assert.equal(letter, "Dear reader");
assert.deepEqual(
  answer.transcript.rows.map((row) => row.kind),
  ["user", "assistant", "tool_result", "assistant", "tool_result", "assistant"],
);
assert.match(answer.text() ?? "", /11/);
assert.equal(answer.cost, 0);

// The run is stored in a new session. A conversation from elsewhere can be the beginning of another one.
assert.equal((await manager.getState(answer.sessionId))?.turns.length, 6);
const other = await manager.run(agent, [
  { role: "system", content: "The office closes at noon." },
  { role: "user", content: "Hello?" },
  { role: "assistant", content: "Hello! What shall I do?" },
  { role: "user", content: "list the files" },
]);
assert.match(other.text() ?? "", /letter\.txt/);
assert.notEqual(other.sessionId, answer.sessionId);

// The same conversation with session values, which are not stored: the input does not change, and the output has it in its lineage.
await using session = Session.fromUserMessage("list the files").to("local", "./office");
await using listed = await agent.run(session);
assert.deepEqual([listed.sessionId, listed.status], [null, "finished"]);
assert.deepEqual(listed.lineage.parents, [session.id, agent.session.id]);
assert.equal(session.transcript.length, 1);
