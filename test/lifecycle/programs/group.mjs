// Runs a group of three in a session, and prints the name of each agent that is asked. node group.mjs <jsonl or sqlite>
// <directory> <run or resume> <seconds that the clock is ahead> <who hangs, or nobody>
import { writeSync } from "node:fs";
import { join } from "node:path";
import { SessionManager } from "skein";
import { GroupSession } from "skein/group";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";

const [kind = "", directory = "", mode = "", ahead = "0", hangs = ""] = process.argv.slice(2);
const clock = () => new Date(Date.now() + Number(ahead) * 1000);
const store = await (kind === "jsonl"
  ? openJsonlStore({ directory, clock })
  : openSqliteStore({ path: join(directory, "skein.db"), clock }));
const manager = new SessionManager({ store, config: { sessionTtl: 0 } });
const group = new GroupSession({ manager });
let asked = 0;
for (const name of ["ada", "bob", "cid"]) {
  group.addAgent({
    name,
    async execute(/** @type {string} */ _message, /** @type {readonly unknown[]} */ history) {
      asked += 1;
      writeSync(1, `${name}\n`);
      if (hangs === `${name} ${asked}`) {
        setInterval(() => {}, 1000);
        await new Promise(() => {});
      }
      return `${name} after ${history.length}`;
    },
  });
}
if (mode === "resume") await group.resume("s");
else await group.run("s", "Go.", { maxRounds: 2 });
writeSync(1, "done\n");
await store.close();
