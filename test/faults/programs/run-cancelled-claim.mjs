// Claims the run of a session and stops right before its start is written, until it gets a line.
import { createInterface } from "node:readline";
import { createAgent, openStore, SessionManager } from "skein";
import { scripted } from "skein/offline";

const [url = "", sessionId = ""] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const store = await openStore(url);
const append = store.append.bind(store);
store.append = async (id, drafts, options) => {
  if (!drafts.some((draft) => draft.type === "run" && draft.phase === "started")) return append(id, drafts, options);
  console.log("claims");
  await lines.next();
  try {
    return await append(id, drafts, options);
  } finally {
    console.log("claimed");
    // Waits here until it is killed.
    await lines.next();
  }
};
const agent = createAgent({ name: "clerk", prompt: "", model: scripted(["Done."]), builtInTools: false });
await new SessionManager({ store }).recover(sessionId, { clerk: agent });
