// Pictures and documents: stored once beside the log, read just before a model gets them, kept by forks, swept when unused.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createAgent, openManager, openStore } from "skein";
import { scripted } from "skein/offline";

const receipt = randomBytes(200_000);
const contract = randomBytes(3_000_000);
await writeFile("receipt.png", receipt);
await writeFile("contract.pdf", contract);

await using store = await openStore("sqlite:./pictures.db");
await using manager = await openManager({ store });
const model = scripted(["12.50 euros were paid.", "It ends in March.", "Until Friday."]);
const agent = createAgent({ prompt: "You read receipts and contracts.", model, builtInTools: false });

// #region message
const { sessionId } = await manager.run(agent, [
  { type: "text", text: "What was paid?" },
  { type: "image", mediaType: "image/png", data: receipt.toString("base64"), name: "receipt.png" },
]);
// #endregion
const log = (await store.readJson(sessionId)).join("");
assert.ok(log.length < 10_000, "the log has a reference instead of the picture");
assert.ok(
  JSON.stringify(model.requests[0]?.messages).includes(receipt.toString("base64")),
  "the model got the picture",
);

// #region upload
const ref = await store.putBlob(sessionId, createReadStream("contract.pdf")); // { blob: "sha256:…", bytes }
await manager.run(sessionId, agent, [
  { type: "text", text: "When does it end?" },
  { type: "file", mediaType: "application/pdf", name: "contract.pdf", ...ref },
]);
// #endregion
const blob = await store.blob(sessionId, ref);
const part = await blob?.bytes({ start: 1000, end: 2000 });
assert.deepEqual(Buffer.from(part ?? []), contract.subarray(1000, 2000));

// A fork shares the blobs of its source. Another session does not see them.
const fork = await manager.fork(sessionId, "another question");
assert.equal((await store.blob(fork.sessionId, ref))?.size, contract.length);
const other = await manager.create({ userId: "ada" });
assert.equal(await store.blob(other.sessionId, ref), null);

// What no log refers to is removed by a sweep, after a day if nothing else is said.
await store.putBlob(sessionId, randomBytes(10_000));
assert.equal((await store.sweepBlobs()).removed, 0);
assert.equal((await store.sweepBlobs({ graceMs: 0 })).removed, 1);
console.log(
  `Session ${sessionId} has ${log.length} characters of log, and ${receipt.length + contract.length} bytes of files.`,
);
