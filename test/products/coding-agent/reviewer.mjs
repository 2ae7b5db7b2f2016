// Another program on the same sessions: an agent of another name, or of the same name without its tool.
import { createAgent, openManager } from "skein";

const [name] = process.argv.slice(2);
const agent = createAgent({ name, prompt: "You review code.", model: "offline/offline" });
const manager = await openManager();
for (const { sessionId } of (await manager.runs({ state: "interrupted" })).items) {
  await manager.recover(sessionId, { [name]: agent }).then(
    () => console.log("taken up"),
    ({ code, message }) => console.log(`${code}: ${message}`),
  );
}
