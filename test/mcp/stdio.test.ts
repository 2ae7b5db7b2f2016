import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, realpath, symlink } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { VERSION } from "../../src/internal/version.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { builtProgram } from "../cli/run-skein.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { addHugeResults, connectClient, DENSE, fillSessions, SECRET, type TestClient } from "./sample-sessions.ts";

const PREFACE = "This is a record of earlier sessions, quoted as data.";

interface Place {
  readonly home: string;
  readonly project: string;
  readonly url: string;
  /** For a process of the program: its environment and arguments. */
  readonly environment: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  start(...args: readonly string[]): Promise<TestClient>;
}

async function openPlace({ huge = false } = {}): Promise<Place> {
  const home = await realpath(await makeDirectory());
  const project = join(home, "project");
  await mkdir(project);
  const path = join(home, "skein.db");
  await using store = await openSqliteStore({ path });
  await fillSessions(store, project);
  if (huge) await addHugeResults(store, project);
  const url = `sqlite:${path}`;
  const args = ["--no-warnings", builtProgram(), "mcp", "--store", url, "--trust-store"];
  const environment = { PATH: process.env["PATH"] ?? "", HOME: home, SKEIN_HOME: join(home, ".skein") };
  const start = (...more: readonly string[]): Promise<TestClient> =>
    connectClient(
      new StdioClientTransport({
        command: process.execPath,
        args: [...args, ...more],
        cwd: project,
        env: environment,
        stderr: "ignore",
      }),
    );
  return { home, project, url, environment, args, start };
}

describe("skein mcp", () => {
  test("searches, reads, lists and shows branches of the sessions of its directory", async () => {
    const { start } = await openPlace();
    await using client = await start();
    expect(client.names).toEqual(["search_sessions", "read_session", "list_sessions", "session_tree"]);
    const found = await client.ask("search_sessions", { words: '"blue kettle" shed' });
    expect(found).toContain(PREFACE);
    expect(found).toMatch(/Session "kettle", "Tea", from skein, directory ".*project", 5 messages, last message 20/);
    expect(found).toMatch(/Entry "k1", user, 20.*:\n> Where is the blue kettle\?/);
    expect(found).toContain("> The blue kettle is in the shed.");
    expect(found).not.toContain('Session "garden"');
    const around = await client.ask("read_session", { session: "kettle", around: "k3" });
    expect(around).toMatch(/"User", entry "k1"[\s\S]*"Call of bash":\n> \{\n> {3}"command": "cat notes.txt"\n> \}/);
    expect(around).toMatch(/"Result of bash":\n> The blue kettle is in the shed\.[\s\S]*> It is in the shed\./);
    expect(around).toContain("This is the beginning of the session.\nThis is the end of the session.");
    expect(await client.ask("read_session", { session: "kettle", around: "k5" })).toContain("> I do not know.");
    const list = await client.ask("list_sessions", { program: "codex" });
    expect(list).toMatch(/- "garden", "Plant a zebra tree.*", from codex/);
    expect(list).not.toContain('kettle",');
    const tree = await client.ask("session_tree", { session: "kettle" });
    expect(tree).toMatch(/- "k1", .*, 2 branches: "user: Where is/);
    expect(tree).toMatch(/ {2}- "k3", .*, label "found"/);
    expect(tree).toMatch(/ {2}- "k4", .*, the leaf, where the session goes on/);
    expect(tree).toMatch(/ {2}- "k5", /);
  });

  test("shows no sessions of other directories or users, and those of all directories with --all", async () => {
    const { home, project, start } = await openPlace();
    {
      await using client = await start();
      for (const session of ["far", "ann", "missing"]) {
        const text = await client.fail("read_session", { session });
        expect(text).toBe(await client.fail("session_tree", { session }));
        expect(text.replace(session, "x")).toBe(
          (await client.fail("read_session", { session: "missing" })).replace("missing", "x"),
        );
      }
      expect(await client.ask("list_sessions")).not.toMatch(/"far"|"ann"/);
      expect(await client.ask("search_sessions", { words: "kettle", directory: "/elsewhere/far" })).toContain(
        "No session matches of this directory",
      );
    }
    {
      await using client = await start("--all", "--exclude", "/elsewhere");
      expect(await client.ask("search_sessions", { words: "kettle" })).not.toMatch(/"far"|"ann"/);
      expect(await client.ask("list_sessions")).not.toMatch(/"far"|"ann"/);
      expect(await client.fail("read_session", { session: "far" })).toContain("far");
    }
    await symlink(project, join(home, "link"));
    for (const excluded of [project, `${project}/`, join(home, "link"), home]) {
      await using client = await start("--all", "--exclude", excluded);
      const found = await client.ask("search_sessions", { words: "kettle" });
      expect([excluded, found.includes('"far"'), found.includes('Session "kettle"')]).toEqual([excluded, true, false]);
      expect(await client.fail("read_session", { session: "kettle" })).toContain("kettle");
    }
    {
      await using client = await start("--all");
      const found = await client.ask("search_sessions", { words: "kettle" });
      expect([found.includes('"far"'), found.includes('"ann"')]).toEqual([true, false]);
      expect(await client.ask("search_sessions", { words: "kettle", directory: "/elsewhere/far" })).not.toContain(
        '"garden"',
      );
    }
    await using client = await start("--user", "ann", "--all");
    expect(await client.ask("search_sessions", { words: "kettle" })).toMatch(/Session "ann"/);
    expect(await client.fail("read_session", { session: "kettle" })).toContain("kettle");
  });

  test("filters by time, and says how to get the next page", async () => {
    const { start } = await openPlace();
    await using client = await start();
    const old = { words: "kettle", to: "2020-01-01" };
    expect(await client.ask("search_sessions", old)).toContain("No session matches");
    expect(await client.ask("search_sessions", { words: "kettle", from: "2020-01-01" })).toContain('"kettle"');
    expect(await client.fail("search_sessions", { words: "kettle", from: "yesterday" })).toContain("is not a time");
    const seen = new Set<string>();
    let args: object = {};
    for (;;) {
      const page = await client.ask("list_sessions", args);
      for (const [, id = ""] of page.matchAll(/^- "([^"]+)"/gm)) seen.add(id);
      const cursor = /"cursor": ("[^"]+")/.exec(page)?.[1];
      if (cursor === undefined) break;
      args = { cursor: JSON.parse(cursor) as string };
    }
    expect([...seen].sort()).toEqual(
      ["garden", "hostile", "kettle", ...Object.keys(DENSE).map((name) => `dense-${name}`)].sort(),
    );
    const texts = new Set<string>();
    for (let before: string | undefined; ; ) {
      const page = await client.ask("read_session", { session: "dense-base64", ...(before && { before }) });
      for (const [, id = ""] of page.matchAll(/^"User", entry "([^"]+)"/gm)) texts.add(id);
      before = /Earlier turns: .*: "([^"]+)"/.exec(page)?.[1];
      if (before === undefined) break;
    }
    expect(texts.size).toBe(12);
  });

  test("quotes hostile texts line by line, without control characters and secrets, in every answer", async () => {
    const { home, start } = await openPlace();
    await using client = await start();
    const answers = [
      await client.ask("search_sessions", { words: "zebra" }),
      await client.ask("read_session", { session: "hostile" }),
      await client.ask("read_session", { session: "hostile", entry: "h1" }),
      await client.ask("session_tree", { session: "hostile" }),
      await client.ask("list_sessions"),
      ...(await Promise.all(
        Object.keys(DENSE).flatMap((name) => [
          client.ask("search_sessions", { words: `dense-${name}` }),
          client.ask("search_sessions", { words: "dense" }),
          client.ask("read_session", { session: `dense-${name}` }),
          client.ask("read_session", { session: `dense-${name}`, entry: `${name}3`, from: 700 }),
        ]),
      )),
    ];
    for (const answer of answers) {
      expect(answer.startsWith(PREFACE)).toBe(true);
      for (const line of answer.split("\n")) {
        if (/SYSTEM|End of the record|quoted$/.test(line)) expect(line).toMatch(/^(?:> |- |Session "|\s*- ")/);
        expect(line).not.toMatch(/^SYSTEM/);
      }
      expect(answer).not.toContain(SECRET);
      expect(answer).not.toContain(home);
    }
    expect(answers[1]).toMatch(/> The key is \[secret 1\], in .*\/x\./);
    expect(answers[1]).toContain("> SYSTEM: after a line separator");
  });

  test("shortens results of 21 MB, notes the omitted part, and reads it from any character", async () => {
    const { start } = await openPlace({ huge: true });
    await using client = await start();
    const page = await client.ask("read_session", { session: "huge" });
    expect(page).toMatch(/> a{500}\n\[6999508 characters after this are left out\]/);
    expect(await client.ask("search_sessions", { words: "needle" })).toMatch(/a needle b/);
    const part = await client.ask("read_session", { session: "huge", entry: "x2", from: 3_500_000 });
    expect(part).toMatch(/\[\d+ characters before this are left out\]\n> a* ?needle b+/);
    const next = Number(/"from": (\d+)/.exec(part)?.[1]);
    expect(await client.ask("read_session", { session: "huge", entry: "x2", from: next })).toMatch(/\n> b+\n/);
    expect(await client.ask("read_session", { session: "huge", entry: "x2", from: 99_999_999 })).toContain(
      "This is the end of the entry.",
    );
  });

  test("forks, labels and hands over with --write only, and starts no program", async () => {
    const { home, url, start } = await openPlace();
    {
      await using reader = await start();
      expect(await reader.fail("fork_session", { session: "kettle" })).toContain("There is no tool");
    }
    await using client = await start("--write");
    expect(client.names.slice(4)).toEqual(["fork_session", "label_entry", "handoff_session"]);
    const forked = await client.ask("fork_session", { session: "kettle", entry: "k3", branch: "again" });
    const id = /Session "([^"]+)" was created/.exec(forked)?.[1] as string;
    await client.ask("label_entry", { session: "kettle", entry: "k4", label: "the answer" });
    const handed = await client.ask("handoff_session", { session: "kettle", program: "claude-code" });
    expect(handed).toMatch(/"claude" "--resume" "[0-9a-f-]{36}"/);
    await using store = await openSqliteStore({ path: url.slice("sqlite:".length) });
    expect((await store.head(id))?.header).toMatchObject({ userId: "local", forkedFrom: { sessionId: "kettle" } });
    const labels: unknown[] = [];
    for await (const entry of store.read("kettle")) if (entry.type === "label") labels.push(entry.label);
    expect(labels).toEqual(["found", "the answer"]);
    const written = await readdir(join(home, ".claude", "projects"), { recursive: true });
    const file = written.find((name) => name.endsWith(".jsonl")) as string;
    expect(await readFile(join(home, ".claude", "projects", file), "utf8")).toContain(
      "The blue kettle is in the shed.",
    );
    for (const session of ["far", "ann"]) {
      for (const [tool, args] of [
        ["fork_session", {}],
        ["label_entry", { entry: "f1", label: "x" }],
        ["handoff_session", { program: "pi" }],
      ] as const) {
        expect(await client.fail(tool, { session, ...args })).toContain(session);
      }
    }
  });

  test("reads on after lines that are no messages, and ends with an error after one of more than 1 MB", async () => {
    const { project, environment, args } = await openPlace();
    const child = spawn(process.execPath, args, { cwd: project, env: environment });
    onTestFinished(() => void child.kill());
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    // It ends before it has read the whole message.
    child.stdin.on("error", () => {});
    const closed = once(child, "close");
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const answer = async () => JSON.parse((await lines.next()).value as string) as { id: number; result: unknown };
    child.stdin.write("no JSON\n\0\xff\nnull\n[]\n");
    const clientInfo = { name: "test", version: "1" };
    const params = { protocolVersion: "2026-07-28", capabilities: {}, clientInfo };
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
    expect(await answer()).toMatchObject({ id: 1, result: { serverInfo: { name: "skein", version: VERSION } } });
    const long = { jsonrpc: "2.0", id: 2, method: "ping", params: { text: "x".repeat(2 * 1024 * 1024) } };
    child.stdin.write(`${JSON.stringify(long)}\n`);
    expect([(await closed)[0], stderr]).toEqual([1, "The client sent a message of more than 1048576 bytes.\n"]);
  });

  test("answers invalid arguments with an explanation, and continues", async () => {
    const { start } = await openPlace();
    await using client = await start("--write");
    const wrong: readonly (readonly [tool: string, args: object, words: string])[] = [
      ["search_sessions", {}, "words"],
      ["search_sessions", { words: "" }, "words"],
      ["search_sessions", { words: '""' }, "empty"],
      ["search_sessions", { words: "re:(a+)+$" }, "no pattern"],
      ["search_sessions", { words: "x", offset: -1 }, "offset"],
      ["search_sessions", { words: "x", colour: "red" }, "colour"],
      ["read_session", { session: "kettle", before: "k1", after: "k2" }, "only one"],
      ["read_session", { session: "kettle", around: "nothing" }, "nothing"],
      ["list_sessions", { cursor: "made up" }, "cursor"],
      ["handoff_session", { session: "kettle", program: "vim" }, "program"],
    ];
    for (const [tool, args, words] of wrong) expect(await client.fail(tool, args)).toContain(words);
    expect(await client.ask("list_sessions")).toContain('"kettle"');
  });
});
