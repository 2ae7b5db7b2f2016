// Increments a variable of a session repeatedly, each time with compare-and-set on the version that it has read.
// node count.mjs <address> <session> <times>; prints "ready" and waits for a line, then prints "done" and the number of conflicts.
import { once } from "node:events";
import { openAt } from "./open-at.mjs";

const [address = "", session = "", times = "0"] = process.argv.slice(2);
const store = await openAt(address);
let conflicts = 0;
console.log("ready");
await once(process.stdin, "data");
for (let added = 0; added < Number(times); ) {
  const head = await store.head(session);
  if (head === null) throw new Error(`There is no session ${session}.`);
  const { variables } = await store.settings(session, head.path);
  const count = Number(variables.count ?? 0) + 1;
  try {
    await store.append(session, [{ type: "variables", set: { count }, unset: [] }], { expectedVersion: head.version });
    added += 1;
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "CONFLICT") throw error;
    conflicts += 1;
  }
}
await store.close();
process.stdin.destroy();
console.log(`done ${conflicts}`);
