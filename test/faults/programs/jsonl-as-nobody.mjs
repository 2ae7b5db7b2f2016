// Tries every kind of write as a user without rights, and prints the codes of the errors as one line of JSON.
// node jsonl-as-nobody.mjs <directory>
import { openJsonlStore } from "skein/jsonl";
import { createHeader } from "skein";

const [directory = ""] = process.argv.slice(2);
if (process.getuid?.() === 0) process.setuid?.(65534);
const store = await openJsonlStore({ directory, lockTimeoutMs: 500 });
const codeOf = (/** @type {Promise<unknown>} */ promise) =>
  promise.then(
    () => "done",
    (error) => error.code,
  );
const codes = [
  await codeOf(store.append("a", [{ type: "message", message: { role: "user", content: "no" } }])),
  await codeOf(store.create(createHeader({ id: "b" }))),
  await codeOf(store.fork("a", createHeader({ id: "c" }))),
  await codeOf(store.delete("a")),
  await codeOf(store.lease("a", "run", 1000)),
];
const head = await store.head("a");
console.log(JSON.stringify({ codes, version: head?.version }));
await store.close();
