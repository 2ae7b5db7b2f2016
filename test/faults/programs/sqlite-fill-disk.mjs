// Appends to a session until there is no more room, and prints what happened as one line of JSON.
// node sqlite-fill-disk.mjs <path> <session>
import { openSqliteStore } from "skein/sqlite";

const [path = "", session = ""] = process.argv.slice(2);
const store = await openSqliteStore({ path });
const acknowledged = [];
/** @type {{ code?: string, message?: string, cause?: unknown } | null} */
let failure = null;
for (let i = 0; i < 100_000 && failure === null; i++) {
  const ids = [`f-${i}`, `f-${i}b`];
  try {
    await store.append(
      session,
      ids.map((id) => ({ id, type: "message", message: { role: "user", content: "x".repeat(700) } })),
    );
    acknowledged.push(...ids);
  } catch (error) {
    failure = /** @type {{ code?: string }} */ (error);
  }
}
// The store still reads, lists and searches, and refuses in the same way again.
const again = await store.append(session, [{ type: "custom", customType: "t", data: "y".repeat(100_000) }]).then(
  () => "done",
  (error) => error.code,
);
const head = await store.head(session);
let read = 0;
for await (const _ of store.read(session)) read += 1;
const listed = (await store.list()).items.map((item) => item.version);
const found = (await store.search("xxxx")).length;
const { code, message, cause } = failure ?? {};
console.log(
  JSON.stringify({
    acknowledged,
    code,
    message,
    hasCause: cause instanceof Error,
    again,
    version: head?.version,
    read,
    listed,
    found,
  }),
);
await store.close();
