import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { chat } from "../../src/cli/commands/chat.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { textOf } from "../../src/session/message.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { skipBecause } from "../skip.ts";
import { builtProgram } from "./run-skein.ts";
import { makeWorkspace } from "./sample-chat.ts";

const SCRIPT = "/usr/bin/script";

/** A running program, with all that it has printed so far. */
class Talk {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  said = "";
  complained = "";
  #heard = () => {};

  constructor(child: ChildProcess) {
    this.child = child;
    this.ended = new Promise((resolve) => child.on("close", resolve));
    child.stdout?.on("data", (part: Buffer) => {
      this.said += stripVTControlCharacters(part.toString());
      this.#heard();
    });
    child.stderr?.on("data", (part: Buffer) => {
      this.complained += part.toString();
    });
    child.stdin?.on("error", () => {});
    void this.ended.then(() => this.#heard());
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  type(keys: string): void {
    this.child.stdin?.write(keys);
  }

  /** Resolves when the program has printed a match, after that of the last call. */
  async hears(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.said);
      if (found !== null) {
        this.said = this.said.slice(found.index + found[0].length);
        return found;
      }
      if (this.child.exitCode !== null) throw new Error(`It ended without ${pattern}: ${this.said}${this.complained}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }
}

function start(home: string, args: readonly string[]): Talk {
  const argv = ["--no-warnings", builtProgram(), "chat", "--workspace", home, ...args];
  return new Talk(spawn(process.execPath, argv, { env: { ...process.env, SKEIN_HOME: home } }));
}

/** Starts the program on a pseudo-terminal; its first line is the id of the process. */
function startAtTerminal(context: TestContext, home: string, args: readonly string[]): Talk {
  return startChatIn(context, home, { home, args: ["--workspace", home, ...args] });
}

/** The same in a directory, which is the workspace unless the arguments name one. */
function startChatIn(
  context: TestContext,
  cwd: string,
  { home, args }: { readonly home: string; readonly args: readonly string[] },
): Talk {
  if (!existsSync(SCRIPT)) skipBecause(context, "there is no program here that makes a terminal: script of util-linux");
  const words = [process.execPath, "--no-warnings", builtProgram(), "chat", ...args];
  const line = `echo pid=$$; exec ${words.map((word) => `'${word}'`).join(" ")}`;
  const env = { ...process.env, SKEIN_HOME: home, SKEIN_STORE: "", TERM: "xterm", SHELL: "/bin/sh" };
  return new Talk(spawn(SCRIPT, ["--quiet", "--return", "--flush", "--command", line, "/dev/null"], { cwd, env }));
}

async function storedTurns(home: string): Promise<string[]> {
  await using store = await openSqliteStore({ path: join(home, "skein.db") });
  const [head] = (await store.list()).items;
  const tree = await SessionTree.on(store, head?.header.id ?? "");
  return (await tree.buildContext()).messages.map(({ role, content }) => `${role}: ${textOf(content)}`);
}

test("answers each line of a pipe and exits with 0, also in an existing session", async () => {
  const home = await makeWorkspace();
  await writeFile(join(home, "notes.txt"), "\u001b[2Jhello");
  const talk = start(home, []);
  talk.child.stdin?.end("list the files\nread notes.txt");
  expect([await talk.ended, talk.complained]).toEqual([0, ""]);
  expect(talk.said).toContain("▸ list_workspace_files {} → ");
  expect(talk.said).toContain("notes.txt says: \ufffd[2Jhello\n");
  const json = start(home, ["--continue", "--json"]);
  json.child.stdin?.end("list the files\n");
  expect(await json.ended).toBe(0);
  const events = json.said
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly type: string });
  expect([events[0]?.type, events.at(-1)?.type]).toEqual(["session-opened", "run-finished"]);
  const turns = await storedTurns(home);
  expect(turns.filter((turn) => turn.startsWith("user: "))).toHaveLength(3);
});

test("denies calls that need approval in a pipe, and exits with 1 if anything failed", async () => {
  const home = await makeWorkspace();
  const talk = start(home, []);
  talk.child.stdin?.end("write hi to a.txt\n/nothing\n");
  expect(await talk.ended).toBe(1);
  expect(talk.said).toContain("failed: No person can approve it here; --ask sets");
  expect(talk.complained).toMatch(/^There is no command \/nothing; [^\n]*\n$/);
  expect(await readdir(home)).not.toContain("a.txt");
});

test("runs calls in a pipe that need no approval by --ask", async () => {
  const home = await makeWorkspace();
  const said: Record<string, string> = {};
  for (const args of [
    ["--ask", "commands"],
    ["--ask", "never"],
  ]) {
    const talk = start(home, args);
    talk.child.stdin?.end("write hi to a.txt, then run cat a.txt\n");
    expect(await talk.ended).toBe(0);
    said[args.join(" ")] = `${/`cat a.txt` \w+/.exec(talk.said)?.[0]}${talk.complained}`;
  }
  expect(said).toEqual({
    "--ask commands": "`cat a.txt` failed",
    "--ask never": "`cat a.txt` printed",
  });
  expect(await readFile(join(home, "a.txt"), "utf8")).toBe("hi");
});

test("shows a command whole at a terminal, with its reach and without control characters", async (context) => {
  const home = await makeWorkspace();
  const talk = startAtTerminal(context, home, []);
  await talk.hears(/> $/);
  const command = `echo ${"x".repeat(300)} && echo end`;
  talk.type(`run ${command}\r`);
  await talk.hears(/run_shell_command:\s+│ echo x{300} && echo end/);
  await talk.hears(
    /Allow run_shell_command(?: in .*\((?:not )?isolated, (?:no )?network\)|: nothing is known .*)\? \[y\/n\] $/,
  );
  talk.type("n\r");
  await talk.hears(/The user does not want that/);
  await talk.hears(/> $/);
  talk.type("\u0004");
  expect(await talk.ended).toBe(0);
});

test("prints one line about invalid options, and creates no session", async () => {
  const home = await makeWorkspace();
  const wrong: [args: string[], code: number][] = [
    [["--workspace", join(home, "nowhere", "deep")], 2],
    [["--ask", "some"], 2],
    [["--ask", "none"], 2],
    [["--model", "nobody/x"], 2],
    [["last", "--continue"], 2],
    [["nobody"], 1],
  ];
  for (const [args, code] of wrong) {
    let [out, err] = ["", ""];
    const output = {
      out: (text: string) => {
        out += text;
      },
      err: (text: string) => {
        err += text;
      },
      colours: false,
      watched: false,
      signal: new AbortController().signal,
    };
    const store = ["--store", `sqlite:${join(home, "skein.db")}`];
    expect([args, await runProgram([chat], ["chat", ...args, ...store], output), out]).toEqual([args, code, ""]);
    expect(err).toMatch(/^[^\n]+\n$/);
  }
  await using store = await openSqliteStore({ path: join(home, "skein.db") });
  expect(await store.count()).toBe(0);
});

test("exits silently when its output is closed, and leaves a complete session", async () => {
  const home = await makeWorkspace();
  const talk = start(home, []);
  talk.child.stdin?.write("list the files\n");
  await talk.hears(/tokens in/);
  talk.child.stdout?.destroy();
  talk.child.stdin?.end("list the files\nlist the files\n");
  expect([await talk.ended, talk.complained]).toEqual([0, ""]);
  expect((await storedTurns(home)).slice(0, 1)).toEqual(["user: list the files"]);
});

test("stops a turn or a question at Ctrl-C, and leaves at a second one at the prompt, or at Ctrl-D", async (context) => {
  const home = await makeWorkspace();
  await writeFile(join(home, "notes.txt"), "Here.");
  const talk = startAtTerminal(context, home, []);
  await talk.hears(/> $/);
  for (const word of ["", "y\r"]) {
    talk.type("run sleep 60\r");
    await talk.hears(/Allow run_shell_command .*\[y\/n\] $/);
    talk.type(word);
    if (word !== "") await talk.hears(/▸ run_shell_command/);
    talk.type("\u0003");
    await talk.hears(/Stopped\./);
    await talk.hears(/> $/);
  }
  talk.type("list the files\r");
  // The store itself is hidden from tools.
  await talk.hears(/notes\.txt/);
  await talk.hears(/> $/);
  talk.type("\u0003");
  await talk.hears(/Press Ctrl-C again to leave/);
  talk.type("\u0003");
  expect(await talk.ended).toBe(0);
});

test("continues a run that was killed while it waited for approval", async (context) => {
  const home = await makeWorkspace();
  const killed = startAtTerminal(context, home, []);
  const [, pid] = await killed.hears(/pid=(\d+)/);
  await killed.hears(/> $/);
  killed.type("write hi to a.txt\r");
  await killed.hears(/Allow write_workspace_file .*\[y\/n\]/);
  process.kill(Number(pid), "SIGKILL");
  await killed.ended;
  const talk = startAtTerminal(context, home, ["last"]);
  await talk.hears(/The last run was interrupted\. .*\/recover/);
  await talk.hears(/> $/);
  talk.type("/recover\r");
  await talk.hears(/Allow write_workspace_file .*\[y\/n\]/);
  talk.type("y\r");
  await talk.hears(/I wrote a\.txt\./);
  await talk.hears(/> $/);
  talk.type("\u0004");
  expect([await talk.ended, await readFile(join(home, "a.txt"), "utf8")]).toEqual([0, "hi"]);
  expect((await storedTurns(home)).map((turn) => turn.split(":")[0])).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

test("asks at a terminal before the tools work in a directory that the session does not belong to", async (context) => {
  const [home, elsewhere] = [await makeWorkspace(), await makeWorkspace()];
  const first = start(home, []);
  first.child.stdin?.end("list the files\n");
  expect(await first.ended).toBe(0);
  const turns = await storedTurns(home);
  const question = /Session \S+ belongs to "([^"]+)"\. Let the tools work in "([^"]+)"\? \[y\/n\] $/;
  const continued = () => startChatIn(context, elsewhere, { home, args: ["last"] });

  const no = continued();
  expect((await no.hears(question)).slice(1)).toEqual([home, elsewhere]);
  // Enter alone and other words are no answer.
  no.type("\r");
  await no.hears(/\[y\/n\] $/);
  no.type("write hi to a.txt\r");
  await no.hears(/\[y\/n\] $/);
  no.type("n\r");
  expect(await no.ended).toBe(1);
  expect([await storedTurns(home), await readdir(elsewhere)]).toEqual([turns, []]);

  const yes = continued();
  await yes.hears(question);
  yes.type("yes\r");
  await yes.hears(/> $/);
  yes.type("write hi to a.txt\r");
  await yes.hears(/\[y\/n\] $/);
  yes.type("y\r");
  await yes.hears(/I wrote a\.txt/);
  expect(await readFile(join(elsewhere, "a.txt"), "utf8")).toBe("hi");
  expect(await readdir(home)).not.toContain("a.txt");

  // In the session's own directory there is no question.
  const own = startChatIn(context, home, { home, args: ["last"] });
  const [prompt] = await own.hears(/\[y\/n\] $|> $/);
  expect(prompt).toBe("> ");
});

test("shows the directory that an imported session claims, without characters that reorder it, and does not trust it", async (context) => {
  const [home, elsewhere] = [await makeWorkspace(), await makeWorkspace()];
  const cwd = `${elsewhere}/\u202egnp.exe`;
  const header = createHeader({ id: "planted", userId: "local", cwd });
  {
    await using store = await openSqliteStore({ path: join(home, "skein.db") });
    await store.create({ ...header, inherited: { entries: 0, counts: false } });
  }
  const talk = startChatIn(context, elsewhere, { home, args: ["planted"] });
  const raw: string[] = [];
  talk.child.stdout?.on("data", (part: Buffer) => raw.push(part.toString()));
  await talk.hears(/was imported and claims to belong to "[^"]*gnp\.exe"\. Let the tools work in "[^"]+"\? \[y\/n\] $/);
  expect(raw.join("")).not.toContain("\u202e");
});
