// Exports the only session of a directory and prints how many characters came out; run it with little memory.
import { exportSession } from "skein/export";
import { openJsonlStore } from "skein/jsonl";

const [directory = "", id = "", wanted] = process.argv.slice(2);
const format = wanted === "markdown" ? "markdown" : "jsonl";
const store = await openJsonlStore({ directory });
let characters = 0;
for await (const piece of exportSession(store, id, { format })) characters += piece.length;
await store.close();
process.stdout.write(`${characters}\n`);
