// Creates sessions of one user concurrently, at most as many as each input line says, and prints the ids of those that
// were accepted. node create.mjs <address> <tag> <sessions>
import { createInterface } from "node:readline";
import { createHeader } from "skein";
import { openAt } from "./open-at.mjs";

const [address = "", tag = "", sessions = "0"] = process.argv.slice(2);
const store = await openAt(address);
for await (const limit of createInterface({ input: process.stdin })) {
  await Promise.all(Array.from({ length: Number(sessions) }, (_, i) => create(`${tag}-${limit}-${i}`, Number(limit))));
  console.log("end");
}
await store.close();

/**
 * @param {string} id
 * @param {number} maxOpenPerUser
 */
async function create(id, maxOpenPerUser) {
  try {
    await store.create(createHeader({ id, userId: "user:bob" }), { maxOpenPerUser });
    console.log(id);
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "CAPACITY") throw error;
  }
}
