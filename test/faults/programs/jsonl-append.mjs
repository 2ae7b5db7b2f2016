// Appends messages to session `a` and prints the id of each one that was acknowledged.
// node jsonl-append.mjs <directory> <durability> <prefix> <count> [characters]
import { writeSync } from "node:fs";
import { openJsonlStore } from "../../../dist/stores/jsonl/index.js";

const [directory = "", durability, prefix, count, characters = "40"] = process.argv.slice(2);
const store = await openJsonlStore({ directory, durability: durability === "fsync" ? "fsync" : "flush" });
const content = "x".repeat(Number(characters));
for (let i = 0; i < Number(count); i++) {
  const id = `${prefix}-${i}`;
  // One in three appends lands as a list.
  const drafts = i % 3 === 0 ? [id, `${id}b`] : [id];
  await store.append(
    "a",
    drafts.map((each) => ({ id: each, type: "message", message: { role: "user", content } })),
  );
  // Written at once, so that what was printed before a kill is what was acknowledged before it.
  writeSync(1, `${drafts.join("\n")}\n`);
}
await store.close();
