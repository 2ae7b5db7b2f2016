// Watch a session live: a server and its client in this process, and another process that writes to the same SQLite file.
// The watcher disconnects in the middle and reconnects; it misses no entry and gets none twice. No API key needed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createHeader, openStore, openTree, textOf } from "skein";
import { createClient } from "skein/client";
import { createServer } from "skein/http";

const url = "sqlite:./sessions.db";
const [mode, sessionId = ""] = process.argv.slice(2);

if (mode === "write") {
  await using store = await openStore(url);
  const tree = await openTree(store, sessionId);
  for (let n = 1; n <= 10; n++) await tree.appendMessage({ role: "user", content: `message ${n}` });
} else {
  await using store = await openStore(url);
  const { header } = await store.create(createHeader({ userId: "ann" }));
  await using server = await createServer({ store });
  const client = createClient({ url: await server.listen() });

  const program = fileURLToPath(import.meta.url);
  const writer = spawn(process.execPath, [...process.execArgv, program, "write", header.id], { stdio: "inherit" });
  writer.on("exit", (code) => assert.equal(code, 0));
  const seen: string[] = [];
  const watch = async (until: number, after: number): Promise<number> => {
    for await (const entry of client.sessions.watch(header.id, { after })) {
      if (entry.type === "message") seen.push(textOf(entry.message.content));
      console.log(`seq ${entry.seq}: ${seen.at(-1)}`);
      if (seen.length >= until) return entry.seq;
    }
    return after;
  };
  const left = await watch(4, -1); // the watcher disconnects after four messages …
  await watch(10, left); // … and reconnects for the rest

  assert.deepEqual(
    seen,
    Array.from({ length: 10 }, (_, index) => `message ${index + 1}`),
  );
  console.log("Ten messages of another process, each seen once.");
}
