// Opens a database at a given time, makes a session, appends one entry, and prints "done" or the code of the error.
// node postgres-open.mjs <url> <schema> <session> <time in ms>
import { createHeader } from "../../../dist/session/index.js";
import { openPostgresStore } from "../../../dist/stores/postgres/index.js";

const [url = "", schema = "", session = "", time = "0"] = process.argv.slice(2);
await new Promise((resolve) => setTimeout(resolve, Number(time) - Date.now() - 20));
// The last moments are waited for without sleeping, so that all start as one.
while (Date.now() < Number(time));
try {
  const store = await openPostgresStore({ url, schema });
  await store.create(createHeader({ id: session }));
  await store.append(session, [{ type: "message", message: { role: "user", content: "hello" } }]);
  await store.close();
  console.log("done");
} catch (error) {
  console.log(`${/** @type {{ code?: string }} */ (error).code}: ${error}`);
}
