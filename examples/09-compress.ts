// Compress: a long session becomes a short one that another agent can continue, in the same workspace.
import assert from "node:assert/strict";
import { createAgent, runSessionCompress, Session } from "skein";
import { offline } from "skein/offline";

const model = offline();
const worker = createAgent({ prompt: "You keep a small workspace.", model });

// Many sessions share this workspace, so it has a name; a temporary one is removed with the last of them.
let session = await worker.run(Session.fromUserMessage('write "1" to a.txt').to("local", "./workspace"));
for (const request of ['write "2" to b.txt', 'write "3" to c.txt', "list the files"]) {
  session = await worker.run(session.merge(Session.fromUserMessage(request)));
}
console.log(`${session.transcript.length} rows`);

const short = await runSessionCompress(session, worker.session, { model });
console.log(`1 row: ${short.text() ?? short.transcript.at(0)?.message.content}`);

assert.equal(short.transcript.length, 1);
assert.equal(short.transcript.at(0)?.kind, "user");
assert.deepEqual(short.lineage.extras, [
  ["compression.lossy", true],
  ["compression.rows_out", 1],
]);

// The workspace is the same: the next agent works on the files of the first one.
await using next = await worker.run(short.merge(Session.fromUserMessage("read c.txt")));
assert.match(next.text() ?? "", /3/);
