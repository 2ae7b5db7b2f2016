// The first agent: it really writes a file and runs a command, in a workspace of its own, with no key and no network.
import assert from "node:assert/strict";
import { createAgent, Session } from "skein";
import { offline } from "skein/offline";

const agent = createAgent({ name: "clerk", prompt: "You keep a small workspace.", model: offline() });

const request = 'write "Dear reader" to letter.txt, then run wc -c letter.txt';
await using session = Session.fromUserMessage(request).to("local"); // where its tools act: a temporary directory

await using answer = await agent.run(session);
for (const { kind, message } of answer.transcript) console.log(`${kind}: ${JSON.stringify(message.content)}`);

const workspace = await answer.requireSandbox();
const letter = new TextDecoder().decode(await workspace.readFile("letter.txt"));
console.log(`letter.txt says: ${letter}`);

assert.equal(letter, "Dear reader");
assert.deepEqual(
  answer.transcript.rows.map((row) => row.kind),
  ["user", "assistant", "tool_result", "assistant", "tool_result", "assistant"],
);
assert.match(answer.text() ?? "", /11/);

// The session that came out knows where it came from, and what it cost. The one that went in is as it was.
assert.deepEqual(answer.lineage.parents, [session.id, agent.session.id]);
assert.equal(answer.lineage.kind, "op_session_loop");
assert.equal(answer.cost, 0);
assert.equal(session.transcript.length, 1);
