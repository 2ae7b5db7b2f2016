// Copies a store to another one, and prints its progress after every part.
// node copy-store.mjs <SQLite file of the source> <jsonl|sqlite> <path of the target>
import { writeSync } from "node:fs";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";
import { copyStore } from "skein/store";

const [path = "", kind = "", target = ""] = process.argv.slice(2);
const from = await openSqliteStore({ path });
const to = kind === "jsonl" ? await openJsonlStore({ directory: target }) : await openSqliteStore({ path: target });
const { failures } = await copyStore(from, to, {
  concurrency: 2,
  onProgress({ sessionId, version }) {
    writeSync(1, `${sessionId} ${version}\n`);
    // Pause, so that a test can kill this process before the copy is complete.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  },
});
writeSync(1, `done ${failures.length}\n`);
await from.close();
await to.close();
