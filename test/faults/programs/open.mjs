// Opens each store whose address it reads, makes a session there, appends one entry, and prints "done" or the error.
// node open.mjs <session>
import { createInterface } from "node:readline";
import { createHeader } from "skein";
import { openAt } from "./open-at.mjs";

const [session = ""] = process.argv.slice(2);
for await (const address of createInterface({ input: process.stdin })) {
  try {
    const store = await openAt(address);
    await store.create(createHeader({ id: session }));
    await store.append(session, [{ type: "message", message: { role: "user", content: "hello" } }]);
    await store.close();
    console.log("done");
  } catch (error) {
    console.log(`${/** @type {{ code?: string }} */ (error).code}: ${error}`);
  }
  console.log("end");
}
