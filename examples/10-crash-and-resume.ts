// Crash and resume: a process is killed in the middle of a tool; another one recovers the run and continues where it stopped.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createAgent, defineTool, resumeSession, runSessionLoop, Session } from "skein";
import { loadSession } from "skein/files";
import { scripted } from "skein/offline";

const crashes = process.env.CRASH === "yes";

const sendLetter = defineTool({
  name: "send_letter",
  description: "Sends a letter. It cannot be taken back.",
  parameters: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
  execute: ({ to }) => {
    appendFileSync("sent.txt", `${to}\n`);
    // The letter is sent, and the process dies before the result is stored.
    if (crashes) process.kill(process.pid, "SIGKILL");
    return "Sent.";
  },
});

const call = { id: "1", name: "send_letter", arguments: '{"to":"Ada"}' };
const tools = [sendLetter];

const path = "./letters.jsonl";

if (crashes) {
  const model = scripted([{ role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls" }]);
  const clerk = createAgent({ prompt: "You send letters.", model, tools, builtInTools: false });
  await clerk.run(Session.create({ text: "Send Ada a letter." }), { persist: path });
} else {
  const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url)], {
    env: { ...process.env, CRASH: "yes" },
  });
  assert.equal(child.signal, "SIGKILL");
  assert.equal((await loadSession(path)).closed, false); // the run has not ended
  const { user, agent } = await resumeSession(path);

  // The log says that the letter may have been sent, so the call is not repeated and the model gets an error.
  const model = scripted(["I cannot tell whether the letter to Ada was sent; please check."]);
  const answer = await runSessionLoop(user, agent, { model, tools, builtInTools: false, persist: path });
  for (const { kind, message } of answer.transcript) console.log(`${kind}: ${message.content}`);

  assert.match(String(answer.transcript.at(-2)?.message.content), /"error_kind":"interrupted"/);
  assert.equal(readFileSync("sent.txt", "utf8"), "Ada\n"); // once
  assert.equal(agent.transcript.at(0)?.message.content, "You send letters."); // the instructions are restored, too
  assert.equal((await loadSession(path)).closed, true);
}
