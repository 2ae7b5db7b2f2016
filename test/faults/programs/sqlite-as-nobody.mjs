// Opens a database as a user without rights and tries every kind of write; prints the results as one line of JSON. node
// sqlite-as-nobody.mjs <path>
import { createHeader } from "skein";
import { openSqliteStore } from "skein/sqlite";

const [path = ""] = process.argv.slice(2);
// Loads the driver, which the user without rights may not be able to reach.
await (await openSqliteStore({ path: ":memory:" })).close();
if (process.getuid?.() === 0) process.setuid?.(65534);
/** @param {() => Promise<unknown>} call */
const codeOf = async (call) => {
  try {
    await call();
    return "done";
  } catch (error) {
    return /** @type {{ code?: string }} */ (error).code;
  }
};
/** @type {import("skein").SessionStore | undefined} */
let store;
const opened = await codeOf(async () => {
  store = await openSqliteStore({ path, create: true });
});
const result = {
  opened,
  codes: /** @type {unknown[]} */ ([]),
  version: /** @type {number | undefined} */ (undefined),
  listed: 0,
};
if (store !== undefined) {
  const open = store;
  result.codes = [
    await codeOf(() => open.append("a", [{ type: "message", message: { role: "user", content: "no" } }])),
    await codeOf(() => open.create(createHeader({ id: "b" }))),
    await codeOf(() => open.fork("a", createHeader({ id: "c" }))),
    await codeOf(() => open.delete("a")),
    await codeOf(() => open.lease("a", "run", 1000)),
  ];
  result.version = (await open.head("a"))?.version;
  result.listed = (await open.list()).items.length;
  await open.close();
}
console.log(JSON.stringify(result));
