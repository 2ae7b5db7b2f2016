// Opens a local sandbox, writes a file, records it, prints its id, and keeps it open until it is killed.
// node sandbox-hold.mjs <path of the registry's file>
import { writeSync } from "node:fs";
import { localBackend } from "skein/sandbox";
import { PersistentSandboxRegistry } from "skein/sandbox";

const [path = ""] = process.argv.slice(2);
const sandbox = await localBackend.open({ env: { FROM: "another process" } });
await sandbox.writeFile("file.txt", "kept");
await new PersistentSandboxRegistry({ path }).record(sandbox);
writeSync(1, `${sandbox.id}\n`);
setInterval(() => {}, 1000);
