import { mkdir, mkdtemp, readFile, realpath, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createAgent, defineTool, openManager, openStore, SessionManager, type SessionStore } from "../../src/index.ts";
import { scripted } from "../../src/models/scripted.ts";
import { findBubblewrap } from "../../src/sandboxes/local/bubblewrap.ts";
import { hostEnvironment } from "../../src/sandboxes/local/host-environment.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { removeAll } from "../remove-tree.ts";
import { skipBecause } from "../skip.ts";

let directory: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-manager-")));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  vi.stubEnv("SKEIN_STORE", "");
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await removeAll(directory);
});

const agentSaying = (...replies: Parameters<typeof scripted>[0]) =>
  createAgent({ name: "helper", prompt: "You help.", model: scripted(replies) });

const calling = (name: string, given: object) =>
  ({ role: "assistant", content: null, toolCalls: [{ id: "c", name, arguments: JSON.stringify(given) }] }) as const;
const write = calling("write_workspace_file", { path: "a.txt", content: "hi" });

async function messagesIn(store: SessionStore, sessionId: string) {
  const said = [];
  for await (const entry of store.read(sessionId)) if (entry.type === "message") said.push(entry);
  return said.map(({ message, by }) => [message.role, message.content, by]);
}

async function sessionsIn(store: SessionStore) {
  return (await store.list({})).items.map(({ header }) => header);
}

describe("openManager", () => {
  test("stores its runs in the default store, whose directory it creates", async () => {
    const manager = await openManager();
    const answer = await manager.run(agentSaying("Hello.", "Bye."), "Hi.");
    await manager[Symbol.asyncDispose]();
    expect(answer).toMatchObject({ status: "finished", questions: [] });
    await using store = await openStore(`sqlite:${join(directory, "home", "skein.db")}`);
    expect(await messagesIn(store, answer.sessionId)).toEqual([
      ["user", "Hi.", undefined],
      ["assistant", "Hello.", undefined],
    ]);
    expect(await sessionsIn(store)).toMatchObject([{ id: answer.sessionId, userId: "local", sandbox: null }]);
  });

  test("opens the store of $SKEIN_STORE, in which ~/ is the home of the user", async () => {
    vi.stubEnv("HOME", directory);
    expect(homedir()).toBe(directory);
    vi.stubEnv("SKEIN_STORE", "jsonl:~/sessions");
    await using manager = await openManager();
    await manager.run(agentSaying("Hello."), "Hi.");
    expect((await stat(join(directory, "sessions"))).isDirectory()).toBe(true);
  });

  test("refuses a relative $SKEIN_STORE, which a cloned repository could contain", async () => {
    vi.stubEnv("SKEIN_STORE", "sqlite:./skein.db");
    await expect(openManager()).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("SKEIN_STORE"),
    });
  });

  test("closes a store that it opened, and not one that it was given", async () => {
    const opened = await openManager({ store: `sqlite:${join(directory, "x.db")}` });
    await opened[Symbol.asyncDispose]();
    await expect(opened.list()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    const store = openMemoryStore();
    const given = await openManager({ store });
    await given[Symbol.asyncDispose]();
    expect((await store.list({})).items).toEqual([]);
  });

  test("has no expiry and no caps by default", async () => {
    await using manager = await openManager({ store: "memory:" });
    expect(manager.config).toMatchObject({ sessionTtl: 0, maxSessionsPerUser: Number.MAX_SAFE_INTEGER });
    await using limited = await openManager({ store: "memory:", config: { maxSessionsPerUser: 1 } });
    expect(limited.config).toMatchObject({ sessionTtl: 0, maxSessionsPerUser: 1 });
  });

  test("refuses a store in a missing directory, and creates the directory with create", async () => {
    const store = `sqlite:${join(directory, "a", "b", "x.db")}`;
    await expect(openManager({ store })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining(`There is no directory "${join(directory, "a", "b")}" for the store`),
    });
    await expect(stat(join(directory, "a"))).rejects.toMatchObject({ code: "ENOENT" });
    await using _manager = await openManager({ store, create: true });
    expect((await stat(join(directory, "a", "b", "x.db"))).isFile()).toBe(true);
  });

  test("creates the workspace, but not its parent directories", async () => {
    const workspace = join(directory, "work");
    await using _manager = await openManager({ store: "memory:", workspace });
    expect((await stat(workspace)).isDirectory()).toBe(true);
    const missing = join(directory, "not", "there");
    await expect(openManager({ store: "memory:", workspace: missing })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("for the workspace"),
    });
    await using _made = await openManager({ store: "memory:", workspace: missing, create: true });
    expect((await stat(missing)).isDirectory()).toBe(true);
  });

  test("as root, gives a workspace that it creates to a new account, which commands run as", async (context) => {
    if (process.getuid?.() !== 0) skipBecause(context, "only root can run commands as other accounts");
    const { setpriv } = await findBubblewrap(hostEnvironment()).catch(() => ({ setpriv: null }));
    if (setpriv === null) skipBecause(context, "bubblewrap or setpriv does not work on this machine");
    const workspace = join(directory, "parent", "work");
    await using manager = await openManager({ store: "memory:", workspace, create: true });
    const { uid } = await stat(workspace);
    expect(uid).toBeGreaterThan(65_534);
    const agent = agentSaying(calling("run_shell_command", { command: "id -u > id.txt" }), "Done.");
    await manager.run(agent, "Who are you?");
    expect(Number(await readFile(join(workspace, "id.txt"), "utf8"))).toBe(uid);
  });

  test.for([{ store: "nothing:" }, { store: 5 }, { workspace: 5 }, { userId: "" }, null])(
    "refuses %j",
    async (options) => {
      await expect(openManager(options as never)).rejects.toMatchObject({
        code: expect.stringMatching(/^INVALID_(OPTION|ID)$/),
      });
    },
  );
});

describe("a run without a session", () => {
  const managed = (init: object = {}) => openManager({ store: "memory:", ...init });

  test("creates one, and its id continues it", async () => {
    await using manager = await managed();
    const agent = agentSaying("One.", "Two.");
    const run = manager.run(agent, "First.");
    const { sessionId } = run;
    const first = await run;
    const second = await manager.run(first.sessionId, agent, "Second.");
    expect([first.sessionId, second.sessionId]).toEqual([sessionId, sessionId]);
    expect((await messagesIn(manager.store, sessionId)).map(([, content]) => content)).toEqual([
      "First.",
      "One.",
      "Second.",
      "Two.",
    ]);
    expect(await sessionsIn(manager.store)).toHaveLength(1);
  });

  test("belongs to the actor, else to the given user, else to local", async () => {
    await using manager = await managed({ userId: "team" });
    const agent = agentSaying("1", "2", "3");
    await manager.run(agent, "a");
    await manager.run(agent, "b", { userId: "ann" });
    await manager.run(agent, "c", { actor: "ben" });
    const sessions = await sessionsIn(manager.store);
    expect(sessions.map(({ userId }) => userId).sort()).toEqual(["ann", "ben", "team"]);
    const ofBen = sessions.find(({ userId }) => userId === "ben");
    expect(await messagesIn(manager.store, ofBen?.id ?? "")).toEqual([
      ["user", "c", "ben"],
      ["assistant", "3", undefined],
    ]);
    expect(() => manager.run(agent, "d", { actor: "ben", userId: "ann" })).toThrow("cannot create a session for user");
  });

  test("refuses a runId and misspelt options at the call, and stores nothing", async () => {
    await using manager = await managed();
    const agent = agentSaying();
    expect(() => manager.run(agent, "Hi.", { runId: "r" } as object)).toThrow("runId needs a session");
    expect(() => manager.run(agent, "Hi.", { workspce: "." } as object)).toThrow("did you mean workspace?");
    expect(() => manager.run(agent, 5 as never)).toThrow('The input is "5"');
    expect(await sessionsIn(manager.store)).toEqual([]);
  });

  test("uses the workspace of the run, else of the manager, and records it in the header", async () => {
    await using manager = await managed({ workspace: join(directory, "one") });
    const agent = createAgent({ prompt: "", model: scripted([write, "Done.", write, "Done."]) });
    await manager.run(agent, "Write.");
    await manager.run(agent, "Write.", { workspace: join(directory, "two") });
    for (const name of ["one", "two"]) expect(await readFile(join(directory, name, "a.txt"), "utf8")).toBe("hi");
    const places = (await sessionsIn(manager.store)).map(({ cwd, sandbox }) => [cwd, sandbox?.spec]);
    expect(places.sort()).toEqual(
      ["one", "two"].map((name) => [join(directory, name), { workingDir: join(directory, name) }]),
    );
  });

  test("uses the manager's workspace in a session without a place", async () => {
    await using manager = await managed({ workspace: join(directory, "one") });
    const { sessionId } = await new SessionManager({ store: manager.store }).create({ userId: "local" });
    await manager.run(sessionId, createAgent({ prompt: "", model: scripted([write, "Done."]) }), "Write.");
    expect(await readFile(join(directory, "one", "a.txt"), "utf8")).toBe("hi");
  });

  test("uses the run's place in a session with another workspace, for that run only", async () => {
    await using manager = await managed({ workspace: join(directory, "one") });
    const agent = createAgent({ prompt: "", model: scripted(["Hello.", write, "Done."]) });
    const { sessionId } = await manager.run(agent, "Hi.");
    await manager.run(sessionId, agent, "Write.", { workspace: join(directory, "two") });
    expect(await readFile(join(directory, "two", "a.txt"), "utf8")).toBe("hi");
    expect((await manager.head(sessionId))?.header.cwd).toBe(join(directory, "one"));
  });

  test("returns that it is parked, and its questions", async () => {
    await using manager = await managed();
    const send = defineTool({
      name: "send",
      description: "Sends.",
      parameters: { type: "object" },
      needsApproval: true,
      execute: () => "sent",
    });
    const model = scripted([calling("send", {}), "Sent."]);
    const agent = createAgent({ prompt: "", model, tools: [send], park: { afterMs: 0 } });
    const answer = await manager.run(agent, "Send it.");
    expect(answer).toMatchObject({ status: "parked", questions: [{ name: "send", callId: "c" }] });
    await manager.approve(answer.sessionId, answer.questions[0]?.question ?? "");
    const recovered = await manager.recover(answer.sessionId, { helper: agent });
    expect(await recovered?.run).toMatchObject({ status: "finished", sessionId: answer.sessionId, questions: [] });
  });
});

describe("the input of a run", () => {
  test("may be messages of every role in an empty session", async () => {
    await using manager = await openManager({ store: "memory:" });
    const model = scripted(["Four."]);
    const answer = await manager.run(createAgent({ prompt: "You help.", model }), [
      { role: "system", content: "Be brief." },
      { role: "user", content: "One and one?" },
      { role: "assistant", content: "Two." },
      { role: "user", content: [{ type: "text", text: "And two more?" }] },
    ]);
    expect((await messagesIn(manager.store, answer.sessionId)).map(([role]) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual([
      "system",
      "system",
      "user",
      "assistant",
      "user",
    ]);
  });

  test("must be user messages in a session with messages, in a run and in a request", async () => {
    await using manager = await openManager({ store: "memory:" });
    const agent = agentSaying("One.", "Two.");
    const { sessionId } = await manager.run(agent, "First.");
    const users = [
      { role: "user", content: "This." },
      { role: "user", content: "And that." },
    ] as const;
    const other = [{ role: "assistant", content: "I said so." }, ...users] as const;
    const refused = { code: "INVALID_OPTION", message: expect.stringContaining("accepts only user messages") };
    await expect(manager.run(sessionId, agent, other)).rejects.toMatchObject(refused);
    await expect(manager.request(sessionId, { input: other })).rejects.toMatchObject(refused);
    await manager.run(sessionId, agent, users, { actor: "local" });
    expect((await messagesIn(manager.store, sessionId)).slice(2)).toEqual([
      ["user", "This.", "local"],
      ["user", "And that.", "local"],
      ["assistant", "Two.", undefined],
    ]);
  });

  test("repeated is the same request, even if entries were added in the meantime", async () => {
    await using manager = await openManager({ store: "memory:" });
    const { sessionId } = await manager.create({ userId: "local" });
    const input = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi." },
    ] as const;
    await manager.request(sessionId, { input, runId: "r" });
    await (await manager.recover(sessionId, { helper: agentSaying("Hello.") }))?.run;
    expect(await manager.request(sessionId, { input, runId: "r" })).toMatchObject({ sessionId, runId: "r" });
    expect((await messagesIn(manager.store, sessionId)).map(([role]) => role)).toEqual(["system", "user", "assistant"]);
  });

  test.for([
    [[{ role: "tool", content: "42" }], 'Message 1 of the input has the role "tool"'],
    [[{ role: "user", content: "Hi.", name: "ann" }], 'has the field "name"'],
    [
      [
        { type: "text", text: "Hi." },
        { role: "user", content: "Hi." },
      ],
      "Message 1 of the input has no role",
    ],
  ] as const)("is refused as %j", async ([input, message]) => {
    await using manager = await openManager({ store: "memory:" });
    expect(() => manager.run(agentSaying(), input as never)).toThrow(message);
  });
});

describe("a model by name", () => {
  test("is created when a run needs it, and a missing key is reported before anything is stored", async () => {
    vi.stubEnv("OPENAI_API_KEY", "");
    await using manager = await openManager({ store: "memory:" });
    const agent = createAgent({ prompt: "", model: "openai/gpt-5-mini" });
    expect(() => manager.run(agent, "Hi.")).toThrow("OPENAI_API_KEY");
    expect(() => agent.run("Hi.")).toThrow("OPENAI_API_KEY");
    vi.stubEnv("OPENAI_API_KEY", "k");
    expect(agent.model).toMatchObject({ provider: "openai", id: "gpt-5-mini" });
    expect(agent.model).toBe(agent.model);
    expect(await sessionsIn(manager.store)).toEqual([]);
    const nobodys = createAgent({ prompt: "", model: "nobody/model" });
    expect(() => manager.run(nobodys, "Hi.")).toThrow("There is no model provider");
    await expect(manager.run(createAgent({ prompt: "", model: "offline/offline" }), "Hi.")).resolves.toMatchObject({
      status: "finished",
    });
  });

  test("whose package is missing fails the run before a session is created", async () => {
    await using manager = await openManager({ store: "memory:" });
    const model = scripted(["Hello."]);
    const missing = Object.assign(new Error("Install the package."), { code: "DRIVER_MISSING" });
    const unprepared = Object.assign(model, { prepare: () => Promise.reject(missing) });
    await expect(manager.run(createAgent({ prompt: "", model: unprepared }), "Hi.")).rejects.toBe(missing);
    expect(await sessionsIn(manager.store)).toEqual([]);
    expect(model.requests).toEqual([]);
  });
});

test("a run of an agent without a manager stores nothing", async () => {
  await mkdir(join(directory, "home"));
  const answer = await agentSaying("Hello.").run([{ role: "user", content: "Hi." }]);
  expect(answer).toMatchObject({ sessionId: null, status: "finished", questions: [] });
  expect(answer.transcript.length).toBe(2);
  await expect(stat(join(directory, "home", "skein.db"))).rejects.toMatchObject({ code: "ENOENT" });
});
