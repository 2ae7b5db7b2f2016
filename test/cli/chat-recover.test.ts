import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { drainRuns } from "../../src/agent/active-runs.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import type { ChatOutput } from "../../src/cli/chat/chat-output.ts";
import type { ChatSession } from "../../src/cli/chat/chat-session.ts";
import { CHAT_AGENT } from "../../src/cli/chat/chat-turns.ts";
import { scripted } from "../../src/models/scripted.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { calling, callOf, inShort } from "../sample-run.ts";
import { eventsIn, makeChat, makeWorkspace, tell, wordsOf } from "./sample-chat.ts";

async function contextOf(chat: ChatSession): Promise<string[]> {
  return (await chat.openTree.buildContext()).messages.map(inShort);
}

describe("a run that waits", () => {
  const write = callOf("w", "write_workspace_file", { path: "a.txt", content: "hi" });

  /** A store with a requested run of ann; with `parks` the run has parked with a question. */
  async function waiting(parks: boolean): Promise<{ store: SessionStore; workspace: string; id: string }> {
    const store = await openMemoryStore();
    const workspace = await makeWorkspace();
    const { manager } = await makeChat(scripted([]), { store, workspace });
    const { sessionId: id } = await manager.create({ userId: "ann" });
    await manager.request(id, { input: "Write it.", runId: "r1" }, { actor: "ann" });
    if (!parks) return { store, workspace, id };
    const first = await makeChat(scripted([calling(write)]), { store, workspace, questions: "parked" });
    for await (const _output of first.open(id));
    expect(eventsIn(await tell(first, "/recover")).at(-1)).toMatchObject({ type: "run-parked" });
    return { store, workspace, id };
  }

  test("for approval shows its question, refuses other messages, and continues with /approve", async () => {
    const { store, workspace, id } = await waiting(true);
    const chat = await makeChat(scripted(["done"]), { store, workspace });
    const opened: ChatOutput[] = [];
    for await (const output of chat.open(id)) opened.push(output);
    expect(wordsOf(opened).join()).toMatch(
      /│ hi\n1 Allow write_workspace_file `a\.txt` .* in a run of ann\)\nThe run waits/,
    );
    const refused = eventsIn(await tell(chat, "something else")).at(-1);
    expect(refused).toMatchObject({ type: "run-failed", error: { code: "SESSION_BUSY" } });
    const outputs = await tell(chat, "/approve 1 looks fine");
    expect(wordsOf(outputs)[0]).toMatch(/^Approved: write_workspace_file /);
    expect(eventsIn(outputs).at(-1)).toMatchObject({ type: "run-finished", runId: "r1" });
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("hi");
    const entries: Entry[] = [];
    for await (const entry of store.read(id)) entries.push(entry);
    const answers = entries.filter((entry) => entry.type === "approval" && entry.decision !== undefined);
    expect(answers).toMatchObject([{ by: "local", note: "looks fine", decision: { approved: true } }]);
  });

  test("for approval gets a denial and its reason by /deny", async () => {
    const { store, workspace, id } = await waiting(true);
    const chat = await makeChat(scripted(["then not"]), { store, workspace });
    for await (const _output of chat.open(id));
    await tell(chat, "/deny Not today.");
    expect((await contextOf(chat)).slice(-2)).toEqual([expect.stringContaining("Not today."), "assistant: then not"]);
    expect(wordsOf(await tell(chat, "/deny"))).toEqual([expect.stringMatching(/^! No call of session \S+ waits/)]);
  });

  test.for(["yes", "stopped"] as const)("for approval is asked about by /recover, and %s counts", async (word) => {
    const { store, workspace, id } = await waiting(true);
    const chat = await makeChat(scripted(["done"]), { store, workspace });
    for await (const _output of chat.open(id));
    const outputs = await tell(chat, "/recover", async (output) => {
      if (output.type === "question") await chat.decide(output.approval.question, word);
    });
    const end = word === "yes" ? [{ type: "run-finished", runId: "r1" }] : [];
    expect(eventsIn(outputs).slice(-1)).toMatchObject(end);
    expect(wordsOf(outputs)).toEqual(word === "yes" ? [] : ["! Stopped."]);
    expect(chat.pendingApprovals).toEqual([]);
  });

  test("to start is announced, and /recover starts it", async () => {
    const { store, workspace, id } = await waiting(false);
    const chat = await makeChat(scripted(["done"]), { store, workspace });
    const opened: ChatOutput[] = [];
    for await (const output of chat.open(id)) opened.push(output);
    expect(wordsOf(opened)).toEqual([expect.stringMatching(/^A run requested .* by ann waits for its turn;/)]);
    await tell(chat, "/recover");
    expect(await contextOf(chat)).toEqual(["user: Write it.", "assistant: done"]);
  });
});

test("/recover records the end of a run with a complete last answer, without calling the model", async () => {
  const chat = await makeChat(scripted(["done"]));
  await tell(chat, "go");
  const { store, id } = chat.openTree;
  await store.append(id, [{ type: "run", runId: "r2", phase: "started", claim: 0, agent: CHAT_AGENT }]);
  expect(wordsOf(await tell(chat, "/recover"))).toEqual(["The last answer is complete; write the next message."]);
  expect((await store.head(id))?.openRuns).toEqual([]);
});

describe("an interrupted run of another program's agent", () => {
  /** A session whose only run, of the agent `coder`, was interrupted. */
  async function interrupted(): Promise<{ readonly store: SessionStore; readonly id: string }> {
    const store = await openMemoryStore();
    const chat = await makeChat(scripted(["done"]), { store });
    await tell(chat, "go");
    const { id } = chat.openTree;
    const started = {
      type: "run",
      runId: "r2",
      phase: "started",
      claim: 0,
      agent: "coder",
      tools: ["publish"],
    } as const;
    await store.append(id, [{ type: "message", message: { role: "user", content: "Publish it." } }, started]);
    return { store, id };
  }

  test("is announced with the name of its agent", async () => {
    const { store, id } = await interrupted();
    const chat = await makeChat(scripted([]), { store });
    const opened: ChatOutput[] = [];
    for await (const output of chat.open(id)) opened.push(output);
    expect(wordsOf(opened)).toEqual([expect.stringMatching(/^The last run, of agent coder, was interrupted\./)]);
  });

  test.for(["Are you there?", "/retry", "/recover"])("is not ended by %j, and nothing is written", async (line) => {
    const { store, id } = await interrupted();
    const chat = await makeChat(scripted([]), { store });
    for await (const _output of chat.open(id));
    const before = (await store.head(id))?.version;
    expect(wordsOf(await tell(chat, line))).toEqual([expect.stringMatching(/^! Run "r2" .* is for agent "coder"/)]);
    const head = await store.head(id);
    expect([head?.version, head?.openRuns.map(({ runId }) => runId)]).toEqual([before, ["r2"]]);
  });

  test("is ended by the first message after it was cancelled", async () => {
    const { store, id } = await interrupted();
    const chat = await makeChat(scripted(["Yes."]), { store });
    for await (const _output of chat.open(id));
    await chat.manager.cancel(id, { runId: "r2" });
    await tell(chat, "Are you there?");
    expect((await contextOf(chat)).at(-1)).toBe("assistant: Yes.");
    expect((await store.head(id))?.openRuns).toEqual([]);
  });
});

describe("an approval that was given before a crash", () => {
  const sleep = callOf("r", "run_shell_command", { command: "sleep 60" });
  const write = callOf("w", "write_workspace_file", { path: "a.txt", content: "hi" });

  test.for<[questions: "asked" | "refused" | "parked", asked: string[], written: boolean]>([
    ["asked", [], true],
    ["refused", ["w"], false],
    ["parked", [], true],
  ])("counts where questions are %s: those that are asked again are %j", async ([questions, asked, written]) => {
    const store = await openMemoryStore();
    const workspace = await makeWorkspace();
    const dying = await makeChat(scripted([calling(sleep, write)]), { store, workspace });
    await tell(dying, "go", async (output) => {
      if (output.type !== "run-event") return;
      const { event } = output;
      if (event.type === "tool-started") await drainRuns({ timeoutMs: 0 });
      // Both questions are asked before the first call runs.
      if (event.type === "approval-required" && event.approval.callId === "w") {
        for (const { question } of dying.pendingApprovals) await dying.decide(question, "yes");
      }
    });
    const chat = await makeChat(scripted(["done"]), { store, workspace, questions });
    for await (const _output of chat.open(dying.openTree.id));
    const calls: string[] = [];
    await tell(chat, "/recover", async (output) => {
      if (output.type !== "run-event" || output.event.type !== "approval-required") return;
      calls.push(output.event.approval.callId);
      await chat.decide(output.event.approval.question, "no");
    });
    expect(calls).toEqual(asked);
    const file = await readFile(join(workspace, "a.txt"), "utf8").catch(() => null);
    expect(file).toBe(written ? "hi" : null);
  });
});

describe("a session that another run has", () => {
  test("is waited for until the lease of a dead run ends", async () => {
    const chat = await makeChat(scripted(["one", "two"]));
    await tell(chat, "first");
    const lease = await chat.manager.store.lease(chat.openTree.id, "dead", 60_000);
    const outputs = await tell(chat, "second", async (output) => {
      if (output.type === "notice") await lease.release();
    });
    expect(wordsOf(outputs)[0]).toMatch(/^Another run has this session\. Waiting: .* in \d+ seconds\.$/);
    expect((await contextOf(chat)).at(-1)).toBe("assistant: two");
  });

  test("is refused when that run is alive, and the waiting can be stopped", async () => {
    const chat = await makeChat(scripted(["one"]));
    await tell(chat, "first");
    const { version } = await chat.openTree.refresh();
    const lease = await chat.manager.store.lease(chat.openTree.id, "alive", 60_000);
    const busy = await tell(chat, "/retry", async (output) => {
      if (output.type === "notice") await lease.renew(90_000);
    });
    expect(wordsOf(busy)[1]).toMatch(/^! .*alive/);
    const stopped = await tell(chat, "second", (output) => {
      if (output.type === "notice") chat.interrupt();
    });
    expect(wordsOf(stopped)[1]).toBe("! Stopped.");
    expect((await chat.openTree.refresh()).version).toBe(version);
  });
});
