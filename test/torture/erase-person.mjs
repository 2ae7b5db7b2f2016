// Erases a user from a store, and prints when it starts and its report.
//
// node erase-person.mjs <address> <user>
import { SessionManager } from "skein";
import { openAt } from "../faults/programs/open-at.mjs";

const [address = "", userId = ""] = process.argv.slice(2);
const store = await openAt(address);
process.stdout.write("begun\n");
await new SessionManager({ store }).erase({ userId }, { forks: "erase" });
process.stdout.write("done\n");
await store.close();
