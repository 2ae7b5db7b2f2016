// Copies a store to another, and prints how far it is after every part.
// node copy-store.mjs <sqlite file to copy from> <jsonl|sqlite> <place to copy to>
import { writeSync } from "node:fs";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";
import { copyStore } from "skein/store";

const [path = "", kind = "", place = ""] = process.argv.slice(2);
const from = await openSqliteStore({ path });
const to = kind === "jsonl" ? await openJsonlStore({ directory: place }) : await openSqliteStore({ path: place });
const { failures } = await copyStore(from, to, {
  concurrency: 2,
  onProgress({ sessionId, version }) {
    writeSync(1, `${sessionId} ${version}\n`);
    // Whoever means to kill this process gets a chance to do it before the copy is over.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  },
});
writeSync(1, `done ${failures.length}\n`);
await from.close();
await to.close();
