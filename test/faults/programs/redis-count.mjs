// Raises a variable of a session by one, again and again, each time on the version that it has read.
// node redis-count.mjs <url> <prefix> <session> <times>; prints "done" and how many conflicts there were.
import { openRedisStore } from "../../../dist/stores/redis/index.js";

const [url = "", prefix = "", session = "", times = "0"] = process.argv.slice(2);
const store = await openRedisStore({ url, prefix });
let conflicts = 0;
for (let i = 0; i < Number(times); ) {
  const head = await store.head(session);
  if (head === null) throw new Error(`There is no session ${session}.`);
  const count = Number(head.path.settings.variables.count ?? 0) + 1;
  try {
    await store.append(session, [{ type: "variables", set: { count }, unset: [] }], { expectedVersion: head.version });
    i += 1;
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "CONFLICT") throw error;
    conflicts += 1;
  }
}
console.log(`done ${conflicts}`);
await store.close();
