// Adds to a counter that the session's variables hold, each time on the version it has read, and again after a conflict.
// Prints "done <conflicts>".
// node postgres-count.mjs <url> <session> <times>
import { openPostgresStore } from "../../../dist/stores/postgres/index.js";

const [url = "", session = "", times = "0"] = process.argv.slice(2);
const store = await openPostgresStore({ url, connectionsMax: 2 });
let conflicts = 0;
for (let added = 0; added < Number(times); ) {
  const head = await store.head(session);
  const count = Number(head?.path.settings.variables.count ?? 0);
  try {
    const draft = /** @type {const} */ ({ type: "variables", set: { count: count + 1 }, unset: [] });
    await store.append(session, [draft], { expectedVersion: head?.version ?? 0 });
    added += 1;
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "CONFLICT") throw error;
    conflicts += 1;
  }
}
await store.close();
console.log(`done ${conflicts}`);
