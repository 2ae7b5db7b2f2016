// Sweeps a store as soon as a line comes in, and prints the expired and the consolidated sessions, and its count. node
// sweep.mjs <jsonl or sqlite> <directory>
import { once } from "node:events";
import { join } from "node:path";
import { SessionManager } from "skein";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";

const [kind = "", directory = ""] = process.argv.slice(2);
const store = await (kind === "jsonl"
  ? openJsonlStore({ directory })
  : openSqliteStore({ path: join(directory, "skein.db") }));
const manager = new SessionManager({
  store,
  consolidator: { consolidate: ({ sessionId }) => console.log(`consolidated ${sessionId}`) },
});
manager.events.on("expired", ({ sessionId }) => console.log(`expired ${sessionId}`));
console.log("ready");
await once(process.stdin, "data");
process.stdin.unref();
process.stdin.pause();
console.log(`counted ${await manager.sweep()}`);
await manager.settled();
await store.close();
