// Appends to a session, making it if need be, and prints the id of each entry once it is stored.
// node redis-append.mjs <url> <prefix> <session> <tag> <appends>
import { writeSync } from "node:fs";
import { createHeader } from "../../../dist/session/index.js";
import { openRedisStore } from "../../../dist/stores/redis/index.js";

const [url = "", prefix = "", session = "", tag = "", appends = "0"] = process.argv.slice(2);
const store = await openRedisStore({ url, prefix });
await store.create(createHeader({ id: session })).catch((error) => {
  if (error.code !== "SESSION_EXISTS") throw error;
});
for (let i = 0; i < Number(appends); i++) {
  const id = `${tag}-${i}`;
  // Every fifth append has three entries, and changes what a listing filters by.
  const drafts = i % 5 === 4 ? threeOf(id, i) : [messageOf(id)];
  const { entries } = await store.append(session, drafts);
  writeSync(1, `${entries.map((entry) => entry.id).join("\n")}\n`);
}
await store.close();

/** @param {string} id */
function messageOf(id) {
  return /** @type {const} */ ({ id, type: "message", message: { role: "user", content: `${id} ${"x".repeat(200)}` } });
}

/**
 * @param {string} id
 * @param {number} i
 */
function threeOf(id, i) {
  const status = i % 2 === 0 ? "suspended" : "active";
  return /** @type {const} */ ([
    messageOf(`${id}/1`),
    { id: `${id}/2`, type: "status", status },
    { id: `${id}/3`, type: "session_info", name: id },
  ]);
}
