// Appends to session `a` until the file system refuses, and prints what happened as one line of JSON.
// node jsonl-fill-disk.mjs <directory> <durability>
import { readFileSync } from "node:fs";
import { openJsonlStore } from "skein/jsonl";

const [directory = "", durability] = process.argv.slice(2);
const store = await openJsonlStore({ directory, durability: durability === "fsync" ? "fsync" : "flush" });
const acknowledged = [];
/** @type {{ code?: string, message?: string, cause?: { code?: string } } | null} */
let failure = null;
for (let i = 0; i < 1000 && failure === null; i++) {
  const ids = [`f-${i}`, `f-${i}b`];
  try {
    await store.append(
      "a",
      ids.map((id) => ({ id, type: "message", message: { role: "user", content: "x".repeat(700) } })),
    );
    acknowledged.push(...ids);
  } catch (error) {
    failure = /** @type {{ code?: string }} */ (error);
  }
}
const head = await store.head("a");
const whole = readFileSync((await store.pathOf("a")) ?? "").at(-1) === 10;
// A smaller one still fits.
const small = await store.append("a", [{ id: "small", type: "session_info", name: "s" }]).then(
  () => true,
  () => false,
);
console.log(
  JSON.stringify({
    acknowledged,
    code: failure?.code,
    message: failure?.message,
    cause: failure?.cause?.code ?? null,
    version: head?.version,
    whole,
    small,
  }),
);
await store.close();
