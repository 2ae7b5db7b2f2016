import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createAgent, type Session, SessionManager } from "../../src/index.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { offline } from "../../src/models/offline.ts";
import { Editor, joined, type Word } from "./acp-editor.ts";
import { makeWorkspace } from "./sample-chat.ts";

const STORES = ["sqlite:skein.db", "jsonl:sessions"];
const mcpServer = fileURLToPath(new URL("../mcp-server.mjs", import.meta.url));

test("announces its capabilities without authentication, and rejects unknown methods", async () => {
  const editor = await Editor.start(await makeWorkspace());
  const hello = await editor.ask("initialize", { protocolVersion: 99, clientCapabilities: {} });
  expect(hello).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: "skein" },
    authMethods: [],
    agentCapabilities: { loadSession: true, sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {} } },
  });
  expect(await editor.ask("auth/status", {})).toEqual({ state: "not_required" });
  await expect(editor.ask("authenticate", { methodId: "key" })).rejects.toMatchObject({
    code: -32602,
    message: "There is no method key: nobody has to sign in here.",
  });
  for (const method of ["logout", "session/archive", "providers/list", "mcp/message", "example.com/extra"])
    await expect(editor.askAnything(method, { sessionId: "x" })).rejects.toMatchObject({ code: -32601 });
  expect([await editor.leave(), editor.complaints]).toEqual([0, ""]);
});

test.for(STORES)("%s: asks before a file is written, shows the change, and prints nothing else", async (url) => {
  const home = await makeWorkspace();
  await writeFile(join(home, "notes.txt"), "Water the plants.");
  const editor = await Editor.start(home, { args: ["--store", url] });
  const sessionId = await editor.begin(home);
  expect(await editor.say(sessionId, "read notes.txt, then write hi to a.txt")).toBe("end_turn");
  const title = "read notes.txt, then write hi to a.txt";
  expect(editor.updates).toContainEqual(expect.objectContaining({ sessionUpdate: "session_info_update", title }));
  expect(editor.updates).toContainEqual(expect.objectContaining({ sessionUpdate: "usage_update", size: 128_000 }));
  expect(editor.updates.find(({ sessionUpdate }) => sessionUpdate === "tool_call")).toMatchObject({
    title: "read_workspace_file notes.txt",
    kind: "read",
    locations: [{ path: join(home, "notes.txt") }],
  });
  expect(joined(editor.told())).toEqual([
    expect.stringMatching(/^agent: No model is chosen, so the offline model answers/),
    "tool_call call_1 in_progress read_workspace_file notes.txt",
    "tool_call_update call_1 completed",
    "tool_call call_2 pending write_workspace_file a.txt",
    "tool_call_update call_2 in_progress write_workspace_file a.txt",
    "tool_call_update call_2 completed",
    "agent: notes.txt says: Water the plants.\nI wrote a.txt.",
  ]);
  expect(editor.asked).toMatchObject([
    {
      toolCall: {
        toolCallId: "call_2",
        title: `Allow write_workspace_file \`a.txt\` in ${home}?`,
        kind: "edit",
        content: [{ type: "diff", path: join(home, "a.txt"), oldText: null, newText: "hi" }],
      },
      options: [{ kind: "allow_once" }, { kind: "reject_once" }],
    },
  ]);
  expect(await readFile(join(home, "a.txt"), "utf8")).toBe("hi");
  for (const line of editor.output.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
});

test("does not run a rejected call, stops the turn for a cancelled request, and reports both", async () => {
  const home = await makeWorkspace();
  let word: Word = "reject";
  const editor = await Editor.start(home, { decide: () => word });
  const sessionId = await editor.begin(home);
  expect(await editor.say(sessionId, "write hi to a.txt")).toBe("end_turn");
  expect(joined(editor.told())).toContain("tool_call_update call_1 failed");
  word = "cancelled";
  expect(await editor.say(sessionId, "run echo hi")).toBe("cancelled");
  const [, asked] = editor.asked;
  expect(asked?.toolCall.title).toMatch(/^Allow run_shell_command `echo hi` in .*(?:isolated, (?:no )?network)\)\?$/);
  await expect(stat(join(home, "a.txt"))).rejects.toThrow("ENOENT");
  word = "allow";
  expect(await editor.say(sessionId, "run echo hi, then write hi to a.txt")).toBe("end_turn");
  expect(await readFile(join(home, "a.txt"), "utf8")).toBe("hi");
});

test("cancels a running command, rejects a second prompt meanwhile, and accepts the next one", async () => {
  const home = await makeWorkspace();
  const editor = await Editor.start(home, { args: ["--ask", "never"] });
  const sessionId = await editor.begin(home);
  const turn = editor.say(sessionId, "run sleep 600");
  await expect.poll(() => editor.told().join()).toContain("in_progress run_shell_command sleep 600");
  await expect(editor.say(sessionId, "list the files")).rejects.toMatchObject({
    code: -32603,
    data: { code: "SESSION_BUSY", sessionId },
  });
  await editor.cancel(sessionId);
  expect(await turn).toBe("cancelled");
  const next = editor.say(sessionId, "list the files");
  expect(await next).toBe("end_turn");
  const hasty = editor.say(sessionId, "run sleep 600");
  await editor.cancel(sessionId);
  expect(await hasty).toBe("cancelled");
});

test.for(STORES)(
  "%s: another process lists, loads, resumes, forks, names, closes and deletes the sessions",
  async (url) => {
    const home = await makeWorkspace();
    const elsewhere = await makeWorkspace();
    const args = ["--store", url];
    const first = await Editor.start(home, { args });
    const sessionId = await first.begin(home);
    await first.say(sessionId, "write hi to a.txt");
    await first.begin(home);
    await first.say(await first.begin(elsewhere), "list the files");
    expect(await first.leave()).toBe(0);

    const editor = await Editor.start(home, { args });
    const here = await editor.ask("session/list", { cwd: home });
    expect(here.sessions).toEqual([
      { sessionId, cwd: home, title: "write hi to a.txt", updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    ]);
    expect((await editor.ask("session/list", {})).sessions.map(({ cwd }) => cwd)).toEqual([elsewhere, home]);
    expect(await editor.ask("session/status", { sessionId })).toEqual({ status: "saved" });

    const loaded = await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
    expect(loaded.modes?.currentModeId).toBe("writes");
    expect(editor.told()).toEqual([
      "user: write hi to a.txt",
      "tool_call call_1 pending write_workspace_file a.txt",
      "tool_call_update call_1 completed",
      "agent: I wrote a.txt.",
    ]);
    expect(await editor.ask("session/status", { sessionId })).toEqual({ status: "open" });
    expect(await editor.say(sessionId, "read a.txt")).toBe("end_turn");
    expect(joined(editor.told()).at(-1)).toBe("agent: a.txt says: hi");

    const fork = await editor.ask("session/fork", { sessionId, cwd: home });
    await editor.say(fork.sessionId, "write bye to a.txt");
    await editor.ask("session/resume", { sessionId: fork.sessionId, cwd: home });
    editor.told();
    await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
    expect(editor.told()).not.toContain("user: write bye to a.txt");

    expect(await editor.ask("session/set_title", { sessionId, title: "Notes" })).toEqual({ title: "Notes" });
    const listed = await editor.ask("session/list", { cwd: home });
    expect(listed.sessions.map(({ title }) => title)).toEqual(["write hi to a.txt", "Notes"]);
    await editor.ask("session/close", { sessionId });
    await expect(editor.say(sessionId, "list the files")).rejects.toMatchObject({ code: -32002 });
    await editor.ask("session/delete", { sessionId });
    await expect(editor.ask("session/status", { sessionId })).rejects.toMatchObject({
      code: -32002,
      data: { sessionId },
    });
    expect((await editor.ask("session/list", { cwd: home })).sessions).toHaveLength(1);
  },
);

test.for(STORES)("%s: continues a killed run when the session is loaded and gets a prompt", async (url) => {
  const home = await makeWorkspace();
  const args = ["--store", url];
  const killed = await Editor.start(home, { args, decide: () => new Promise(() => {}) });
  const sessionId = await killed.begin(home);
  const turn = killed.say(sessionId, "write hi to a.txt");
  turn.catch(() => {});
  await expect.poll(() => killed.asked.length).toBe(1);
  await killed.kill();
  await expect(turn).rejects.toThrow();

  const editor = await Editor.start(home, { args });
  await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
  editor.told();
  expect(await editor.say(sessionId, "read a.txt")).toBe("end_turn");
  expect(editor.asked).toHaveLength(1);
  const told = joined(editor.told()).filter((line) => line.startsWith("agent: "));
  expect(told).toEqual(["agent: I wrote a.txt.", "agent: a.txt says: hi"]);
  await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
  expect(editor.told().map((line) => line.split(" ")[0])).toEqual([
    ...["user:", "tool_call", "tool_call_update", "agent:"],
    ...["user:", "tool_call", "tool_call_update", "agent:"],
  ]);
});

test("asks the questions of a parked run in the editor, and continues that run before the new prompt", async () => {
  const home = await makeWorkspace();
  const url = `sqlite:${join(home, "skein.db")}`;
  await using store = await openStore(url);
  await using manager = new SessionManager({ store, config: { sessionTtl: 0 } });
  const { sessionId } = await manager.create({ userId: "local", cwd: home });
  const agent = createAgent({ name: "skein", prompt: "Help.", model: offline(), ask: "writes" });
  const place = (input: Session) => input.to("local", home);
  const run = manager.run(sessionId, agent, "write hi to a.txt", { park: { afterMs: 0 }, place });
  await run;
  expect(run.status).toBe("parked");
  const editor = await Editor.start(home);
  await editor.ask("session/resume", { sessionId, cwd: home });
  expect(await editor.say(sessionId, "read a.txt")).toBe("end_turn");
  expect(editor.asked.map(({ toolCall }) => toolCall.title)).toEqual([
    `Allow write_workspace_file \`a.txt\` in ${home}?`,
  ]);
  expect(joined(editor.told()).at(-1)).toBe("agent: a.txt says: hi");
});

test("answers no prompt in a session of another model without its key, nor in one with a run of another agent", async () => {
  const home = await makeWorkspace();
  await using store = await openStore(`sqlite:${join(home, "skein.db")}`);
  await using manager = new SessionManager({ store, config: { sessionTtl: 0 } });
  const { sessionId: answered } = await manager.create({ userId: "local", cwd: home });
  await manager.addTurn(answered, { role: "user", content: "Hi." });
  await manager.addTurn(answered, { role: "assistant", content: "Hello.", provider: "openai", model: "gpt-5" });
  const { sessionId: open } = await manager.create({ userId: "local", cwd: home });
  const clerk = createAgent({ name: "clerk", prompt: "Help.", model: offline(), ask: "writes" });
  const place = (input: Session) => input.to("local", home);
  expect((await manager.run(open, clerk, "write hi to a.txt", { park: { afterMs: 0 }, place })).status).toBe("parked");
  const [question] = (await manager.runs({ state: "asking" })).items.flatMap(({ questions }) => questions);
  await manager.approve(open, question?.question ?? "");
  const before = [await digestOf(store, answered), await digestOf(store, open)];
  const editor = await Editor.start(home, { env: { OPENAI_API_KEY: "" } });
  await editor.ask("session/load", { sessionId: answered, cwd: home, mcpServers: [] });
  await expect(editor.say(answered, "Go on.")).rejects.toMatchObject({
    message: expect.stringContaining("OPENAI_API_KEY"),
  });
  await editor.ask("session/load", { sessionId: open, cwd: home, mcpServers: [] });
  await expect(editor.say(open, "Go on.")).rejects.toMatchObject({
    message: expect.stringContaining('is for agent "clerk"'),
  });
  expect([await digestOf(store, answered), await digestOf(store, open)]).toEqual(before);
});

test("rejects a second editor on one session while the first has a run, and accepts it later", async () => {
  const home = await makeWorkspace();
  let allow = (): void => {};
  const first = await Editor.start(home, {
    decide: () => new Promise((resolve) => (allow = () => resolve("allow"))),
  });
  const sessionId = await first.begin(home);
  const turn = first.say(sessionId, "write hi to a.txt");
  await expect.poll(() => first.asked.length).toBe(1);
  const second = await Editor.start(home);
  await second.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
  await expect(second.say(sessionId, "read a.txt")).rejects.toMatchObject({
    code: -32603,
    message: expect.stringMatching(/^Session .* is in use by run .*; try again when it is done\.$/),
    data: { code: "SESSION_BUSY" },
  });
  allow();
  expect(await turn).toBe("end_turn");
  expect(await second.say(sessionId, "read a.txt")).toBe("end_turn");
  expect(joined(second.told()).at(-1)).toBe("agent: a.txt says: hi");
});

test("changes the approval policy and the model by modes and options, for all later prompts", async () => {
  const home = await makeWorkspace();
  const editor = await Editor.start(home, { env: { OPENAI_API_KEY: "none" } });
  const { sessionId, modes, configOptions } = await editor.ask("session/new", { cwd: home, mcpServers: [] });
  expect(modes?.availableModes.map(({ id }) => id)).toEqual(["always", "writes", "commands", "never"]);
  expect(configOptions).toMatchObject([
    { id: "mode", category: "mode", currentValue: "writes" },
    { id: "model", category: "model", currentValue: "offline/offline" },
  ]);
  expect(JSON.stringify(configOptions)).toContain('"openai/gpt-5.5"');
  await editor.ask("session/set_mode", { sessionId, modeId: "commands" });
  expect(editor.updates).toContainEqual({ sessionUpdate: "current_mode_update", currentModeId: "commands" });
  expect(await editor.say(sessionId, "write hi to a.txt")).toBe("end_turn");
  expect(editor.asked).toEqual([]);
  const set = { sessionId, configId: "mode", value: "always" };
  expect((await editor.ask("session/set_config_option", set)).configOptions[0]).toMatchObject({
    currentValue: "always",
  });
  await editor.say(sessionId, "read a.txt");
  expect(editor.asked).toHaveLength(1);
  const model = { sessionId, configId: "model", value: "openai/gpt-5.5" };
  await editor.ask("session/set_config_option", model);
  await editor.ask("session/close", { sessionId });
  const again = await editor.ask("session/resume", { sessionId, cwd: home });
  expect(again.configOptions?.[1]).toMatchObject({ currentValue: "openai/gpt-5.5" });
  for (const [configId, value] of [
    ["model", "nobody/x"],
    ["mode", "most"],
    ["volume", "11"],
  ] as const)
    await expect(editor.ask("session/set_config_option", { sessionId, configId, value })).rejects.toMatchObject({
      code: -32602,
      data: { code: "INVALID_OPTION" },
    });
  await expect(editor.ask("session/set_mode", { sessionId, modeId: "most" })).rejects.toMatchObject({ code: -32602 });
});

test("offers and runs suitable chat commands, and sends other texts with a slash to the model", async () => {
  const home = await makeWorkspace();
  const editor = await Editor.start(home);
  const sessionId = await editor.begin(home);
  await expect
    .poll(() => editor.updates.map(({ sessionUpdate }) => sessionUpdate))
    .toContain("available_commands_update");
  const [offered] = editor.updates;
  expect(JSON.stringify(offered)).toContain(
    '{"name":"name","description":"Name the session.","input":{"hint":"<text>"}}',
  );
  await editor.say(sessionId, "list the files");
  expect(await editor.say(sessionId, "/name Trip")).toBe("end_turn");
  expect(editor.updates).toContainEqual(
    expect.objectContaining({ sessionUpdate: "session_info_update", title: "Trip" }),
  );
  editor.told();
  await editor.say(sessionId, "/tree");
  expect(joined(editor.told())).toEqual([expect.stringContaining("user: list the files")]);
  await expect(editor.say(sessionId, "/branch nowhere")).rejects.toMatchObject({
    message: expect.stringContaining('There is no entry "nowhere"'),
  });
  await editor.say(sessionId, "/fork elsewhere");
  await editor.ask("session/load", { sessionId, cwd: home, mcpServers: [] });
  expect(editor.told()).toContain("user: /fork elsewhere");
});

test("asks for approval of every call to the editor's MCP servers, and rejects a session with an unreachable one", async () => {
  const home = await makeWorkspace();
  const editor = await Editor.start(home, { args: ["--ask", "commands"] });
  const server = { name: "shop", command: process.execPath, args: [mcpServer], env: [] };
  const { sessionId } = await editor.ask("session/new", { cwd: home, mcpServers: [server] });
  expect(await editor.say(sessionId, 'call shop_echo with {"text":"hello there"}')).toBe("end_turn");
  expect(editor.asked.map(({ toolCall }) => toolCall.rawInput)).toEqual([{ text: "hello there" }]);
  expect(JSON.stringify(editor.updates)).toContain('"hello there"');
  const sse = { type: "sse" as const, name: "old", url: "http://127.0.0.1:1", headers: [] };
  await expect(editor.ask("session/new", { cwd: home, mcpServers: [server, sse] })).rejects.toMatchObject({
    code: -32602,
    message: "The MCP server old is of the type sse; give a program, or one of the type http.",
  });
  const broken = { name: "broken", command: join(home, "nothing"), args: [], env: [] };
  await expect(editor.ask("session/new", { cwd: home, mcpServers: [broken] })).rejects.toMatchObject({
    data: { code: "INVALID_TOOL" },
  });
});

test("rejects unknown sessions and invalid requests, stays in its directory, and keeps working", async () => {
  const home = await makeWorkspace();
  const outside = await makeWorkspace();
  await writeFile(join(outside, "secret.txt"), "a secret");
  const editor = await Editor.start(home, { args: ["--ask", "never"] });
  const params = { sessionId: "nobody", cwd: home, mcpServers: [] };
  for (const method of ["session/load", "session/resume", "session/fork", "session/status"] as const)
    await expect([
      method,
      await editor.askAnything(method, params).catch(({ code, data }) => ({ code, data })),
    ]).toEqual([method, { code: -32002, data: { code: "SESSION_NOT_FOUND", sessionId: "nobody" } }]);
  for (const cwd of [".", join(home, "nowhere")])
    await expect(editor.begin(cwd)).rejects.toMatchObject({ code: -32602, data: { code: "INVALID_OPTION" } });
  for (const wrong of [{}, { cwd: 1, mcpServers: [] }, { cwd: home, mcpServers: "none" }, null])
    await expect(editor.askAnything("session/new", wrong)).rejects.toMatchObject({ code: -32602 });
  const sessionId = await editor.begin(home);
  await expect(editor.askAnything("session/prompt", { sessionId })).rejects.toMatchObject({ code: -32602 });
  editor.child.stdin?.write("this is no JSON\n");
  expect(await editor.say(sessionId, `read ${join(outside, "secret.txt")}`)).toBe("end_turn");
  const told = JSON.stringify(editor.updates);
  expect(told).toContain('"status":"failed"');
  expect(told).not.toContain("a secret");
});
