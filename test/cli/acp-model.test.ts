import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openModelServer, type Replay } from "../model-server.ts";
import { Editor } from "./acp-editor.ts";
import { builtProgram } from "./run-skein.ts";
import { makeWorkspace } from "./sample-chat.ts";

/** An answer as streamed chat completions. */
function streamed(delta: object, finish: string): Replay {
  const chunk = (choice: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice] })}\n\n`;
  return {
    body: `${chunk({ index: 0, delta: { role: "assistant", ...delta } })}${chunk({ index: 0, delta: {}, finish_reason: finish })}data: [DONE]\n\n`,
  };
}

/** The environment variables that direct requests to a model server. */
function askingAt(url: string): Record<string, string> {
  return { OPENAI_API_KEY: "none", OPENAI_BASE_URL: url };
}

test("sends images, embedded files and links of a prompt to the model, but no audio", async () => {
  const home = await makeWorkspace();
  await using server = await openModelServer(streamed({ content: "I see." }, "stop"));
  const editor = await Editor.start(home, { args: ["--model", "openai/gpt-4o"], env: askingAt(server.url) });
  const sessionId = await editor.begin(home);
  const prompt = [
    { type: "text", text: "What is this?" },
    { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
    { type: "resource", resource: { uri: "file:///notes.txt", text: "Water the plants." } },
    { type: "resource_link", name: "more.txt", uri: "file:///more.txt" },
  ] as const;
  expect(await editor.ask("session/prompt", { sessionId, prompt: [...prompt] })).toEqual({ stopReason: "end_turn" });
  const asked = JSON.stringify(server.asked[0]?.body["messages"] ?? server.asked[0]?.body["input"]);
  for (const part of [
    "What is this?",
    "data:image/png;base64,iVBORw0KGgo=",
    "file:///notes.txt",
    "Water the plants.",
    "more.txt: file:///more.txt",
  ])
    expect(asked).toContain(part);
  const sound = { type: "audio", mimeType: "audio/wav", data: "UklGRg==" } as const;
  await expect(editor.ask("session/prompt", { sessionId, prompt: [sound] })).rejects.toMatchObject({
    code: -32602,
    message: "A prompt takes text, images and files here, and no audio.",
  });
  editor.told();
  await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
  expect(editor.told().slice(0, 2)).toEqual(["user: What is this?", "user: image"]);
});

test("returns the stop reason of a turn: too long, refused, too many rounds, or an error with its message", async () => {
  const home = await makeWorkspace();
  const call = { index: 0, id: "c", type: "function", function: { name: "list_workspace_files", arguments: "{}" } };
  await using server = await openModelServer(
    streamed({ content: "And so" }, "length"),
    streamed({ content: "No." }, "content_filter"),
    { status: 401, body: '{"error":{"message":"no such key"}}' },
    streamed({ tool_calls: [call] }, "tool_calls"),
  );
  const editor = await Editor.start(home, { args: ["--model", "openai/gpt-4o"], env: askingAt(server.url) });
  const sessionId = await editor.begin(home);
  expect(await editor.say(sessionId, "Tell a story.")).toBe("max_tokens");
  expect(await editor.say(sessionId, "Go on.")).toBe("refusal");
  await expect(editor.say(sessionId, "Please.")).rejects.toMatchObject({
    code: -32603,
    data: { code: "MODEL_FAILED" },
  });
  expect(await editor.say(sessionId, "List the files for ever.")).toBe("max_turn_requests");
});

test("names the version to install if the protocol's package is missing or too old", async () => {
  const home = await makeWorkspace();
  symlinkSync(dirname(dirname(builtProgram())), join(home, "dist"));
  writeFileSync(join(home, "package.json"), '{ "name": "skein", "version": "0.0.0", "type": "module" }');
  const installed = (exports: object, source: string): string => {
    const folder = join(home, "node_modules/@agentclientprotocol/sdk");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", exports }));
    writeFileSync(join(folder, "acp.js"), source);
    return start();
  };
  const start = (): string => {
    const argv = ["--preserve-symlinks", "--preserve-symlinks-main", join(home, "dist/cli/skein.js"), "acp"];
    const { status, stderr } = spawnSync(process.execPath, argv, { cwd: home, encoding: "utf8", input: "" });
    return `${status} ${stderr}`;
  };
  const saying = (here: string) =>
    `1 An agent for editors needs a package, and ${here}: npm install @agentclientprotocol/sdk@^2.4.\n`;
  expect(start()).toBe(saying("none is installed"));
  expect(installed({ ".": "./acp.js" }, "")).toBe(saying("another version is installed"));
  const methods = 'export const AGENT_METHODS = { initialize: "initialize" };';
  expect(installed({ "./unstable": "./acp.js" }, methods)).toBe(saying("another version is installed"));
});
