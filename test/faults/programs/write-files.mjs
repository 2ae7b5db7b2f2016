// Makes every kind of file that the library makes, below a directory, and waits for its standard input to end while the
// stores are open.
// node write-files.mjs <directory>, with SKEIN_HOME and TMPDIR below it
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAgent, createHeader, openStore, Session, SessionManager, SessionTree } from "skein";
import { exportJsonl, openSessionWriter } from "skein/files";
import { offline } from "skein/offline";
import { PersistentSandboxRegistry } from "skein/sandbox";

const [directory = ""] = process.argv.slice(2);
const message = /** @type {const} */ ({ role: "user", content: "A word for nobody else." });

const stores = [];
for (const url of [
  `sqlite:${join(directory, "made/by/sqlite/skein.db")}`,
  `jsonl:${join(directory, "made/by/jsonl")}`,
]) {
  const store = await openStore(url, { create: true });
  stores.push(store);
  await store.create(createHeader({ id: "kept", userId: "ann" }));
  // Enough entries that the log gets an index.
  for (let i = 0; i < 5; i++) {
    await store.append(
      "kept",
      Array.from({ length: 500 }, (_, n) => ({ id: `m${i}-${n}`, type: "message", message })),
    );
  }
  await store.create(createHeader({ id: "gone", userId: "ann" }));
  await store.append("gone", [{ id: "m", type: "message", message }]);
  const manager = new SessionManager({ store });
  await manager.checkpoint("kept");
  await manager.checkpoint("gone");
  await store.lease("kept", "a-run", 60_000);
  await store.delete("gone");
  await store.search("nobody");
}

const tree = await SessionTree.create(process.cwd());
await tree.appendMessage(message);
await tree.appendMessage({ role: "assistant", content: "Only for you." });
const writer = await openSessionWriter(Session.fromUserMessage("Half a file."));
await writer.abandon();

const agent = createAgent({ prompt: "", model: offline() });
const session = Session.fromUserMessage("write hello to a.txt").to("local");
const answer = await agent.run(session, { persist: true });
const sandbox = await answer.requireSandbox();
await new PersistentSandboxRegistry().record(sandbox);
await sandbox.snapshot?.();
await exportJsonl([answer], join(directory, "lineage.jsonl"));

writeFileSync(1, "made\n");
process.stdin.resume();
await once(process.stdin, "end");
for (const store of stores) await store.close();
await tree[Symbol.asyncDispose]();
