// Opens a session's file, appends once, prints a line, and keeps the file open until it is killed.
// node tree-hold.mjs <path>
import { writeSync } from "node:fs";
import { SessionTree } from "skein";

const [path = ""] = process.argv.slice(2);
const tree = await SessionTree.open(path);
await tree.setName("held by another process");
writeSync(1, "held\n");
setInterval(() => {}, 1000);
