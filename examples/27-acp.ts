// In an editor: `skein acp` is an agent of the Agent Client Protocol. Here the protocol's own client stands for the editor:
// it creates a session, allows a call, exits, and loads the session again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  type ClientContext,
  client,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
} from "@agentclientprotocol/sdk";

const program = fileURLToPath(new URL("cli/skein.js", import.meta.resolve("skein"))); // an editor's settings say "skein"

// #region editor
/** Starts the agent, uses it, and ends it. Returns the agent's messages. */
async function inEditor(work: (agent: ClientContext) => Promise<void>): Promise<string> {
  const child = spawn(
    process.execPath,
    [program, "acp", "--store", "sqlite:./editor.db", "--model", "offline/offline"],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  let told = "";
  await client({ name: "editor" })
    .onNotification("session/update", ({ params: { update } }) => {
      if ("content" in update && update.content && "text" in update.content) told += update.content.text;
    })
    .onRequest("session/request_permission", ({ params: { toolCall, options } }) => {
      console.log(toolCall.title);
      const allow = options.find(({ kind }) => kind === "allow_once");
      return { outcome: allow ? { outcome: "selected", optionId: allow.optionId } : { outcome: "cancelled" } };
    })
    .connectWith(
      ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>),
      async (agent) => {
        await agent.request("initialize", { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
        await work(agent);
      },
    );
  child.stdin.end();
  await new Promise((resolve) => child.once("close", resolve));
  return told;
}
// #endregion

const setup = { cwd: process.cwd(), mcpServers: [] };
let sessionId = "";
const first = await inEditor(async (agent) => {
  ({ sessionId } = await agent.request("session/new", setup));
  const prompt: PromptRequest = { sessionId, prompt: [{ type: "text", text: "write hello to greeting.txt" }] };
  const { stopReason } = await agent.request("session/prompt", prompt);
  assert.equal(stopReason, "end_turn");
});
assert.equal(first, "I wrote greeting.txt.");

// Another day: the editor lists the sessions of its project, loads one with all messages, and continues it.
const later = await inEditor(async (agent) => {
  const { sessions } = await agent.request("session/list", { cwd: setup.cwd });
  assert.ok(sessions.some((session) => session.sessionId === sessionId));
  await agent.request("session/load", { sessionId, ...setup });
  await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "read greeting.txt" }] });
});
console.log(later);
assert.ok(later.startsWith("write hello to greeting.txt") && later.endsWith("greeting.txt says: hello"));
