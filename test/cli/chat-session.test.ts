import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { drainRuns } from "../../src/agent/active-runs.ts";
import type { AskPolicy } from "../../src/agent/tools/ask-policy.ts";
import type { ChatOutput } from "../../src/cli/chat/chat-output.ts";
import type { ChatSession } from "../../src/cli/chat/chat-session.ts";
import { ModelError } from "../../src/agent/model/model-error.ts";
import { scripted } from "../../src/models/scripted.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { calling, callOf, inShort, saying } from "../sample-run.ts";
import { eventsIn, makeChat, makeWorkspace, tell, wordsOf } from "./sample-chat.ts";

async function contextOf(chat: ChatSession): Promise<string[]> {
  return (await chat.openTree.buildContext()).messages.map(inShort);
}

describe("a chat", () => {
  test("creates a session of its directory with the first turn, and continues it", async () => {
    const model = scripted(["one", "two"]);
    const chat = await makeChat(model);
    expect(wordsOf(await tell(chat, ["", "  ", "/sessions", "/tree"]))).toEqual([
      "There are no sessions yet.",
      "! There is no session yet; write a message first.",
    ]);
    expect(chat.tree).toBeNull();
    const [opened] = await tell(chat, "first");
    expect(opened).toEqual({ type: "session-opened", sessionId: chat.openTree.id, model: "scripted/scripted" });
    await tell(chat, "second");
    expect(chat.openTree.header).toMatchObject({ cwd: chat.workspace, sandbox: { backend: "local" } });
    expect(model.requests[1]?.messages.slice(1).map(inShort)).toEqual([
      "user: first",
      "assistant: one",
      "user: second",
    ]);
    expect(await contextOf(chat)).toEqual(["user: first", "assistant: one", "user: second", "assistant: two"]);
  });

  test("gives the agent its instructions, and keeps those of an existing session", async () => {
    const store = await openMemoryStore();
    const first = await makeChat(scripted(["one"]), { store, system: "Be a pirate." });
    await tell(first, "hello");
    const model = scripted(["two"]);
    const later = await makeChat(model, { store });
    for await (const _output of later.open(first.openTree.id));
    await tell(later, "and now?");
    expect(model.requests[0]?.messages.map(inShort)).toEqual([
      "system: Be a pirate.",
      "user: hello",
      "assistant: one",
      "user: and now?",
    ]);
  });

  test("joins a line that ends with a backslash to the next, and discards it on request", async () => {
    const chat = await makeChat(scripted(["ok"]));
    expect(await tell(chat, "never\\")).toEqual([]);
    expect(chat.continues).toBe(true);
    chat.discardPendingLines();
    await tell(chat, ["one\\", "two"]);
    expect(chat.continues).toBe(false);
    expect((await contextOf(chat))[0]).toBe("user: one\ntwo");
  });

  test("suggests the nearest command and stores nothing, and sends a line with a path to the model", async () => {
    const chat = await makeChat(scripted(["ok"]));
    await tell(chat, "/etc/hosts, what is that?");
    const before = (await chat.openTree.refresh()).version;
    expect(wordsOf(await tell(chat, ["/retyr", "/__proto__", "/label", "/branch 99", "/branch nothing"]))).toEqual([
      "! There is no command /retyr; did you mean /retry?",
      "! There is no command /__proto__; /help lists them.",
      "! Write /label <text>: Put a label on the last entry.",
      expect.stringMatching(/^! There is no entry "99" in session \S+; skein tree shows the numbers of its entries\.$/),
      expect.stringContaining('There is no entry "nothing"'),
    ]);
    expect((await chat.openTree.refresh()).version).toBe(before);
  });

  test("prints why a model gave no answer, and continues", async () => {
    const chat = await makeChat(
      scripted([new ModelError("authentication", "The key is wrong.", { provider: "x" }), "better"]),
    );
    const failed = eventsIn(await tell(chat, "hello")).at(-1);
    expect(failed).toMatchObject({ type: "run-failed", error: { message: "The key is wrong." } });
    expect(eventsIn(await tell(chat, "/retry")).at(-1)).toMatchObject({ type: "run-finished" });
    expect(await contextOf(chat)).toEqual(["user: hello", "assistant: better"]);
  });

  test("stops a turn when it is interrupted, keeps its messages, and continues", async () => {
    const endless = async function* () {
      yield { type: "text-delta", text: "half an " } as const;
      await new Promise(() => {});
    };
    const chat = await makeChat(scripted([endless, "whole"]));
    expect(chat.interrupt()).toBe(false);
    const outputs = await tell(chat, "hello", (output) => {
      if (output.type === "run-event" && output.event.type === "text-delta") expect(chat.interrupt()).toBe(true);
    });
    expect(eventsIn(outputs).at(-1)).toMatchObject({ type: "run-failed", error: { code: "ABORTED" } });
    await tell(chat, "again");
    expect(await contextOf(chat)).toEqual(["user: hello", "assistant: half an ", "user: again", "assistant: whole"]);
  });
});

describe("the commands of a chat", () => {
  test("undo goes back before the last turn, and deletes nothing", async () => {
    const chat = await makeChat(scripted(["one", "two"]));
    await tell(chat, ["first", "second"]);
    const before = await chat.openTree.entries();
    expect(wordsOf(await tell(chat, "/undo"))).toEqual(["Back before: second"]);
    expect(await contextOf(chat)).toEqual(["user: first", "assistant: one"]);
    expect(wordsOf(await tell(chat, ["/undo", "/undo"]))).toEqual([
      "Back before: first",
      "! This branch has no message of yours.",
    ]);
    expect((await chat.openTree.entries()).slice(0, before.length)).toEqual(before);
  });

  test("retry gets another answer on a branch beside the first", async () => {
    const model = scripted(["one", "two"]);
    const chat = await makeChat(model);
    await tell(chat, ["question", "/retry"]);
    expect(model.requests[1]?.messages.map(inShort)).toEqual(model.requests[0]?.messages.map(inShort));
    expect(await contextOf(chat)).toEqual(["user: question", "assistant: two"]);
    const [drawn] = wordsOf(await tell(chat, "/tree"));
    expect(drawn?.split("\n")).toEqual([
      "0 variables: systemPrompt",
      "1 user: question",
      "├─ 2 setup of skein",
      "│  4 assistant: one",
      "└─ 7 setup of skein",
      "   9 assistant: two ← leaf",
    ]);
  });

  test("branch continues from an entry, by its number or its id", async () => {
    const chat = await makeChat(scripted(["one", "two", "three"]));
    await tell(chat, ["first", "second"]);
    expect(wordsOf(await tell(chat, "/branch 4"))).toEqual(["The next turn follows entry 4."]);
    await tell(chat, "other");
    expect(await contextOf(chat)).toEqual(["user: first", "assistant: one", "user: other", "assistant: three"]);
    const question = (await chat.openTree.getBranch()).find(({ seq }) => seq === 1);
    await tell(chat, `/branch ${question?.id}`);
    expect(await contextOf(chat)).toEqual(["user: first"]);
    expect(wordsOf(await tell(chat, "/branch 3"))[0]).toMatch(/^! /);
  });

  test("fork continues in another session and keeps the first unchanged; open goes back", async () => {
    const chat = await makeChat(scripted(["one", "two", "three"]));
    await tell(chat, ["first", "/name The trunk"]);
    const trunk = chat.openTree.id;
    await tell(chat, ["/fork twig", "second"]);
    expect(chat.openTree.id).not.toBe(trunk);
    expect(chat.openTree.header).toMatchObject({ cwd: chat.workspace, forkedFrom: { branchName: "twig" } });
    expect(await contextOf(chat)).toHaveLength(4);
    const [listing] = wordsOf(await tell(chat, "/sessions"));
    expect(listing).toMatch(/^1 \S+ {2}The trunk \/ twig \(4 turns\) ← this one\n2 \S+ {2}The trunk \(2 turns\)$/);
    await tell(chat, "/open 2");
    expect([chat.openTree.id, await contextOf(chat)]).toEqual([trunk, ["user: first", "assistant: one"]]);
    expect(wordsOf(await tell(chat, "/open nobody"))[0]).toMatch(/^! There is no session "nobody"/);
    expect(chat.openTree.id).toBe(trunk);
  });

  test("compact summarizes only older messages", async () => {
    const model = scripted([saying("x".repeat(90_000)), "short", "The summary."]);
    const chat = await makeChat(model);
    await tell(chat, "first");
    expect(wordsOf(await tell(chat, "/compact"))).toEqual(["The context is too short to be summarized."]);
    await tell(chat, "y".repeat(90_000));
    const [told] = wordsOf(await tell(chat, "/compact keep the names"));
    expect(told).toMatch(/^\d+ tokens were replaced by this summary:\nThe summary\.$/);
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("keep the names");
    expect((await contextOf(chat))[0]).toContain("The summary.");
  });

  test("label and name are stored, and checkpoints restore the session's position", async () => {
    const chat = await makeChat(scripted(["one", "two"]));
    await tell(chat, ["first", "/label here", "/name A talk", "/checkpoint", "second"]);
    const tree = chat.openTree;
    expect([[...(await tree.getLabels()).values()], await tree.getName()]).toEqual([["here"], "A talk"]);
    const [listed] = wordsOf(await tell(chat, "/checkpoints"));
    expect(listed).toMatch(/^1 \S+ {2}\S+, at 8 entries$/);
    await tell(chat, "/restore 1");
    expect(await contextOf(chat)).toEqual(["user: first", "assistant: one"]);
    const other = await makeChat(scripted(["three"]), { store: chat.manager.store });
    await tell(other, "elsewhere");
    const foreign = await other.manager.checkpoint(other.openTree.id);
    expect(wordsOf(await tell(chat, `/restore ${foreign.id}`))[0]).toMatch(/^! There is no checkpoint/);
  });

  test("checkpoints with files restore those of the workspace, and save the current ones first", async () => {
    vi.stubEnv("SKEIN_HOME", await makeWorkspace());
    onTestFinished(() => void vi.unstubAllEnvs());
    const chat = await makeChat(scripted(["one"]));
    const plan = join(chat.workspace, "plan.txt");
    await writeFile(plan, "train");
    await tell(chat, ["first", "/checkpoint files"]);
    await writeFile(plan, "boat");
    expect(wordsOf(await tell(chat, "/checkpoints"))[0]).toMatch(/^1 \S+ {2}\S+, at \d+ entries, with files$/);
    await tell(chat, "/restore 1");
    expect(await readFile(plan, "utf8")).toBe("boat");
    const [said = ""] = wordsOf(await tell(chat, "/restore 1 files"));
    expect(await readFile(plan, "utf8")).toBe("train");
    await tell(chat, `/restore ${/checkpoint (\S+) has/.exec(said)?.[1]} files`);
    expect(await readFile(plan, "utf8")).toBe("boat");
    expect(wordsOf(await tell(chat, "/checkpoint everything"))[0]).toMatch(
      /^! \/checkpoint has no argument "everything"/,
    );
  });

  test("model switches to another one, which a later chat uses as well if it is available", async () => {
    const store = await openMemoryStore();
    const chat = await makeChat(scripted(["one", "two"]), { store });
    await tell(chat, "first");
    expect(wordsOf(await tell(chat, ["/model", "/model other/big", "/model locked/x"]))).toEqual([
      "scripted/scripted answers.",
      "other/big answers.",
      "! There is no key for locked.",
    ]);
    const later = await makeChat(scripted([]), { store });
    for await (const _output of later.open(chat.openTree.id));
    expect(wordsOf(await tell(later, "/model"))).toEqual(["other/big answers."]);
    await chat.openTree.appendModelChange("locked", "x");
    const without = await makeChat(scripted([]), { store });
    const outputs: ChatOutput[] = [];
    for await (const output of without.open(chat.openTree.id)) outputs.push(output);
    expect(wordsOf(outputs)).toEqual([
      expect.stringMatching(/^! There is no key for locked\. .*answered by locked\/x;/),
    ]);
    const before = await store.head(chat.openTree.id);
    expect(wordsOf(await tell(without, "second"))).toEqual(wordsOf(outputs));
    expect(await store.head(chat.openTree.id)).toEqual(before);
  });

  test("context and cost show the next request and the usage", async () => {
    const usage = { inputTokens: 10, outputTokens: 2, totalTokens: 12 };
    const chat = await makeChat(scripted([saying("one", { usage, cost: 0.5 }), saying("two", { usage, cost: 0.25 })]));
    await tell(chat, ["first", "/retry"]);
    expect(wordsOf(await tell(chat, "/cost"))).toEqual([
      "This branch: 10 tokens in, 2 out, $0.2500\nThe session, including summaries: 20 tokens in, 4 out, $0.7500",
    ]);
    const [seen] = wordsOf(await tell(chat, "/context"));
    expect(seen).toMatch(
      /^ +\d+ {2}system: You are .*\n +2 {2}user: first\n +1 {2}assistant: two\nAbout \d+ tokens for scripted\/scripted\.$/,
    );
  });

  test("export writes a new file in the format of its extension, and never replaces a file", async () => {
    const chat = await makeChat(scripted(["one"]));
    await tell(chat, "first");
    const [read, kept, none] = ["talk.md", "talk.jsonl", "talk.doc"].map((name) => join(chat.workspace, name));
    expect(wordsOf(await tell(chat, [`/export ${read}`, `/export ${kept}`, `/export ${none}`]))).toEqual([
      `The session was written to ${read}.`,
      `The session was written to ${kept}.`,
      `! "${none}" must end with one of .jsonl, .md, .html.`,
    ]);
    expect(await readFile(read as string, "utf8")).toContain("first");
    const written = await readFile(kept as string, "utf8");
    expect(JSON.parse(written.split("\n")[0] as string)).toMatchObject({ type: "session", id: chat.openTree.id });
    await tell(chat, "/name Later");
    expect(wordsOf(await tell(chat, [`/export ${kept}`, `/export ${join(none as string, "x.md")}`]))).toEqual([
      `! "${kept}" already exists; name another file.`,
      `! There is no directory "${none}" for the file; check the path, or make it first.`,
    ]);
    expect(await readFile(kept as string, "utf8")).toBe(written);
  });

  test("help lists every command, and quit and exit end the chat", async () => {
    const chat = await makeChat(scripted([]));
    const [help] = wordsOf(await tell(chat, "/help"));
    for (const name of "tree branch undo retry fork compact label name model checkpoint checkpoints restore".split(
      " ",
    )) {
      expect(help).toMatch(new RegExp(`^ {2}/${name}\\b`, "m"));
    }
    expect(help).toContain("  /quit or /exit ");
    expect(await tell(chat, ["/quit", "/exit"])).toEqual([{ type: "chat-ended" }, { type: "chat-ended" }]);
  });
});

describe("calls that write or run", () => {
  const write = callOf("w", "write_workspace_file", { path: "a.txt", content: "hi" });
  const run = callOf("r", "run_shell_command", { command: "cat a.txt" });
  const look = callOf("l", "list_workspace_files");

  test.for<[AskPolicy, string[]]>([
    ["always", ["l", "w", "r"]],
    ["writes", ["w", "r"]],
    ["commands", ["r"]],
    ["never", []],
  ])("need approval with --ask %s: %j", async ([ask, asked]) => {
    const chat = await makeChat(scripted([calling(look), calling(write), calling(run), "done"]), { ask });
    const calls: string[] = [];
    const outputs = await tell(chat, "go", async (output) => {
      if (output.type !== "run-event" || output.event.type !== "approval-required") return;
      calls.push(output.event.approval.callId);
      await chat.decide(output.event.approval.question, "yes");
    });
    expect(calls).toEqual(asked);
    expect(await readFile(join(chat.workspace, "a.txt"), "utf8")).toBe("hi");
    expect(eventsIn(outputs).at(-1)).toMatchObject({ type: "run-finished" });
    expect((await contextOf(chat)).at(-2)).toContain('"stdout":"hi"');
  });

  test("do not run when they are denied, and the model gets the reason", async () => {
    const chat = await makeChat(scripted([calling(write), "then not"]));
    await tell(chat, "go", async (output) => {
      if (output.type === "run-event" && output.event.type === "approval-required") {
        const { question } = output.event.approval;
        await chat.decide(question, "no");
        // An answer that comes too late changes nothing.
        await chat.decide(question, "yes");
      }
    });
    expect((await contextOf(chat))[2]).toContain("The user does not want that.");
    await expect(readFile(join(chat.workspace, "a.txt"))).rejects.toThrow("ENOENT");
  });

  test("wait for approval across a crash: the next chat announces them, lists them, and continues", async () => {
    const store = await openMemoryStore();
    const workspace = await makeWorkspace();
    const dying = await makeChat(scripted([calling(write)]), { store, workspace });
    await tell(dying, "go", async (output) => {
      // Releases the run without an answer, as the end of a process does.
      if (output.type === "run-event" && output.event.type === "approval-required") await drainRuns({ timeoutMs: 0 });
    });
    const chat = await makeChat(scripted(["done"]), { store, workspace });
    const outputs: ChatOutput[] = [];
    for await (const output of chat.open(dying.openTree.id)) outputs.push(output);
    expect(wordsOf(outputs)).toEqual(["The last run was interrupted. No message is lost; /recover continues the run."]);
    expect(wordsOf(await tell(chat, "/approvals"))).toEqual([
      expect.stringMatching(
        /^write_workspace_file:\n│ hi\n1 Allow write_workspace_file `a\.txt` in \S+\? \(asked [-\d: ]+\)\nThe run waits for your answer: \/approve or \/deny\.$/,
      ),
    ]);
    await tell(chat, "/recover", async (output) => {
      if (output.type === "run-event" && output.event.type === "approval-required") {
        await chat.decide(output.event.approval.question, "yes");
      }
    });
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("hi");
    expect((await contextOf(chat)).at(-1)).toBe("assistant: done");
    expect(wordsOf(await tell(chat, ["/recover", "/approvals"]))).toEqual([
      "There is no run to recover.",
      "No call waits for your approval.",
    ]);
  });
});
