import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { homedir } from "node:os";
import { onTestFinished, expect, test, vi } from "vitest";
import { createAgent, openManager, Session } from "../../src/index.ts";
import { offline } from "../../src/models/index.ts";
import { scripted } from "../../src/models/scripted.ts";
import { startTestServer, TOKENS, tokenOf } from "../http/server-support.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { runHere } from "./run-skein.ts";

/** A user who has never used Skein: an empty home, and no environment variables. */
async function newUser(): Promise<string> {
  const home = await makeDirectory();
  vi.stubEnv("HOME", home);
  vi.stubEnv("SKEIN_HOME", "");
  vi.stubEnv("SKEIN_STORE", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(homedir()).toBe(home);
  return home;
}

async function filesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  return names
    .filter((name) => name.isFile())
    .map(({ parentPath, name }) => relative(directory, join(parentPath, name)));
}

const helper = () => createAgent({ name: "helper", prompt: "You help.", model: scripted(["Hello.", "Bye."]) });

test("skein list and a server show what a program stored in the default store", async () => {
  const home = await newUser();
  const manager = await openManager({ workspace: join(home, "work") });
  const { sessionId } = await manager.run(helper(), "Say hello.");
  await manager.run(sessionId, helper(), "And bye.");
  await manager[Symbol.asyncDispose]();
  const kept = (await filesIn(home)).filter((path) => !/-(wal|shm)$/.test(path));
  expect(kept).toEqual([join(".skein", "skein.db")]);
  const { code, stdout } = await runHere(["list"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining(sessionId)]);
  expect(stdout).toContain("Say hello.");
  await using shown = await openManager();
  await using server = await startTestServer({ manager: shown, tokens: TOKENS });
  const { body } = await server.call("GET", "/api/sessions", undefined, { token: tokenOf("root") });
  expect(body).toMatchObject({ items: [{ header: { id: sessionId } }] });
});

test("skein chat --continue finds the session of a program by its directory", async () => {
  const home = await newUser();
  const manager = await openManager({ workspace: home });
  const { sessionId } = await manager.run(createAgent({ prompt: "You help.", model: offline() }), "list the files");
  await manager[Symbol.asyncDispose]();
  const ended = await runHere(["list", "--cwd", home, "--status", "active", "--json"]);
  expect(JSON.parse(ended.stdout)).toMatchObject({ sessions: [{ id: sessionId, cwd: home, userId: "local" }] });
});

test("list names the directory of session files outside the store, with the command that lists them", async () => {
  const home = await newUser();
  const { sessionId } = await helper().run(Session.fromUserMessage("Say hello."), { persist: true });
  const hint =
    "There are no sessions in this store, but 1 session file in ~/.skein/sessions; skein list --store jsonl:~/.skein/sessions lists them.\n";
  // Before the default store exists, and when it exists and is empty.
  expect(await runHere(["list"])).toMatchObject({ code: 0, stderr: hint });
  await using _manager = await openManager();
  expect(await runHere(["list"])).toMatchObject({ code: 0, stderr: hint });
  expect((await runHere(["list", "--user", "nobody"])).stderr).toBe("");
  const command = /skein (list --store \S+)/.exec(hint)?.[1] ?? "";
  const listed = await runHere(command.split(" "), { trusts: false });
  expect([listed.code, listed.stdout, listed.stderr]).toEqual([0, expect.stringContaining(sessionId ?? "-"), ""]);
  expect((await stat(join(home, ".skein", "sessions"))).isDirectory()).toBe(true);
});

test("an export creates its file, and the directory above it only with --create", async () => {
  const home = await newUser();
  const manager = await openManager();
  const { sessionId } = await manager.run(helper(), "Say hello.");
  await manager[Symbol.asyncDispose]();
  const output = join(home, "out", "talk.md");
  const refused = await runHere(["export", sessionId, "--output", output]);
  expect(refused).toMatchObject({
    code: 2,
    stderr: `There is no directory "${join(home, "out")}" for the file; check the path, or let --create make it (in code, create: true).\n`,
  });
  expect((await runHere(["export", sessionId, "--output", output, "--create"])).code).toBe(0);
  expect(await readFile(output, "utf8")).toContain("Say hello.");
  await mkdir(join(home, "archive"));
  const copied = ["copy", "--session", sessionId, "--to"];
  expect((await runHere([...copied, "sqlite:~/archive/deep/x.db"])).code).toBe(2);
  expect(await runHere([...copied, "sqlite:~/archive/x.db"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 session is the same"),
  });
  expect((await stat(join(home, "archive", "x.db"))).isFile()).toBe(true);
});
