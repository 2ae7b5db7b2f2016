import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { tamper } from "../doctor/damage.ts";
import { makeDirectory, say } from "../moving/sample-store.ts";
import { jsonOf, runHere, sampleStore } from "./run-skein.ts";

/** Tested in separate files. */
const elsewhere =
  "acp chat erase export export-user handoff import serve worker open approve deny cancel recover mcp".split(" ");

async function linesOf(...args: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runHere(args);
  expect([args, code, stderr]).toEqual([args, 0, ""]);
  return stdout.trimEnd().split("\n");
}

test("every command prints with --json the fields that its help documents", async () => {
  const store = await sampleStore();
  const at = (...args: string[]) => jsonOf(...args, "--store", store);
  const { checkpoint } = (await at("checkpoint", "plan")) as { checkpoint: { id: string } };
  const run: [string, ...string[]][] = [
    ["list"],
    ["search", "Oslo"],
    ["show", "plan"],
    ["tree", "plan"],
    ["stats"],
    ["cache", "plan"],
    ["runs"],
    ["approvals"],
    ["label", "plan", "leaf", "here"],
    ["rename", "plan", "Trip"],
    ["fork", "plan", "other"],
    ["merge", "plan", "plan-b"],
    ["compact", "plan"],
    ["omit", "plan", "leaf"],
    ["undo-edit", "plan"],
    ["checkpoints", "plan"],
    ["restore", checkpoint.id],
    ["prune", "--older-than", "1d", "--dry-run"],
    ["sweep", "--idle", "1w"],
    ["doctor"],
    ["delete", "plan-b"],
    ["undelete", "plan-b"],
  ];
  for (const args of run) await at(...args);
  await jsonOf("copy", "--from", store, "--to", "memory:");
  await jsonOf("completion", "bash");
  await jsonOf("token");
  await jsonOf("docs", "fork a session");
  const covered = new Set([
    ...run.map(([name]) => name),
    "checkpoint",
    "copy",
    "completion",
    "token",
    "docs",
    ...elsewhere,
  ]);
  expect(commands.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
});

test("list shows sessions newest first, by user, status and parent, page by page or all", async () => {
  const store = await sampleStore();
  expect(await linesOf("list", "--store", store)).toEqual([
    expect.stringMatching(/^ID +LAST MESSAGE +STATUS +TURNS +NAME$/),
    expect.stringMatching(/^plan-b +\d{4}-\d\d-\d\d \d\d:\d\d +active +5 +Lisbon or Oslo\? \/ b$/),
    expect.stringMatching(/^plan +\d{4}-\d\d-\d\d \d\d:\d\d +active +3 +Lisbon or Oslo\?$/),
  ]);
  const first = await runHere(["list", "--store", store, "--limit", "1"]);
  const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] as string;
  expect(first.stdout).not.toMatch(/^plan /m);
  const second = await linesOf("list", "--store", store, "--limit", "1", "--cursor", cursor);
  expect(second.map((line) => line.split(" ")[0])).toEqual(["ID", "plan"]);
  const ids = async (...args: string[]) =>
    ((await jsonOf("list", "--store", store, ...args)) as { sessions: { id: string }[] }).sessions.map(({ id }) => id);
  expect(await ids("--limit", "1", "--all")).toEqual(["plan-b", "plan"]);
  expect(await ids("--parent", "plan")).toEqual(["plan-b"]);
  expect(await jsonOf("list", "--store", store)).toMatchObject({ sessions: [{ branch: "b" }, { branch: null }] });
  expect(await ids("--user", "eve")).toEqual([]);
  expect(await ids("--cwd", "/work/project/..")).toEqual(["plan"]);
  expect(await ids("--status", "closed", "--status", "expired")).toEqual([]);
  await runHere(["delete", "plan-b", "--store", store]);
  expect(await ids("--deleted")).toEqual(["plan-b"]);
});

test("list without a store says how to start, and rejects a named store that is missing", async () => {
  vi.stubEnv("SKEIN_HOME", join(await makeDirectory(), "none"));
  onTestFinished(() => void vi.unstubAllEnvs());
  const said = "There are no sessions yet. Start one with skein chat, or name another store with --store URL.\n";
  expect(await runHere(["list"])).toEqual({ code: 0, stdout: "", stderr: said });
  expect(await jsonOf("list")).toEqual({ sessions: [], damaged: [], next: null });
  const named = await runHere(["list", "--store", `sqlite:${join(await makeDirectory(), "none.db")}`]);
  expect(named).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("There is no store at ") });
});

test("search finds messages, and reports if none matches", async () => {
  const store = await sampleStore();
  const found = await runHere(["search", "night", "train", "--store", store]);
  expect([found.code, found.stdout]).toEqual([
    0,
    expect.stringMatching(/^plan-b {2}.*\n {2}q2 {2}By night train\?\n$/),
  ]);
  expect(await runHere(["search", "nowhere", "--store", store])).toEqual({
    code: 0,
    stdout: "",
    stderr: "No session matches.\n",
  });
});

test("show prints the path to the leaf, its last entries, or the path to another entry", async () => {
  const store = await sampleStore();
  const whole = (await linesOf("show", "plan-b", "--store", store)).join("\n");
  expect(whole).toMatch(
    /^Session {2}plan-b {2}active\n\nuser {2}\S+ {2}q\nLisbon or Oslo\?\n\nassistant {2}\S+ {2}a2\nOslo, /,
  );
  expect(whole).not.toContain("Lisbon.");
  const end = (await linesOf("show", "plan-b", "--limit", "1", "--store", store)).join("\n");
  expect(end).toMatch(/… earlier entries: --at q2, or --all\n\nassistant {2}\S+ {2}a3\nWhy not\.$/);
  expect(await jsonOf("show", "plan-b", "--limit", "2", "--at", "q2", "--store", store)).toMatchObject({
    session: { id: "plan-b" },
    entries: [{ id: "a2" }, { id: "q2" }],
    before: "q",
  });
  expect(await jsonOf("show", "plan", "--at", "a1", "--all", "--store", store)).toMatchObject({
    entries: [{ id: "q" }, { id: "a1" }],
    before: null,
  });
  const missing = await runHere(["show", "plan", "--at", "nowhere", "--store", store]);
  expect(missing).toEqual({ code: 1, stdout: "", stderr: expect.stringContaining('There is no entry "nowhere"') });
});

test("show prints tool calls, failures, and an empty session", async () => {
  const toolCalls = [{ id: "c", name: "exec", arguments: '{"command":"ls"}' }];
  const store = await sampleStore(async (made) => {
    await made.create(createHeader({ id: "calls" }));
    await made.append("calls", [
      { type: "message", message: { role: "assistant", content: null, toolCalls } },
      { type: "message", message: { role: "tool", toolCallId: "c", name: "exec", content: "no", isError: true } },
      { type: "model_change", provider: "offline", modelId: "m" },
    ]);
    await made.create(createHeader({ id: "empty" }));
  });
  const shown = (await linesOf("show", "calls", "--store", store)).join("\n");
  expect(shown).toContain('\n→ exec {"command":"ls"}\n');
  expect(shown).toMatch(/\ntool, failed exec {2}\S+ {2}\S+\nno\n\nmodel: offline\/m /);
  expect(await linesOf("show", "empty", "--store", store)).toEqual(["Session  empty  active"]);
});

test("tree shows the branches with labels and the leaf, and every command accepts an entry by its number", async () => {
  const store = await sampleStore();
  const at = (...args: string[]) => jsonOf(...args, "--store", store);
  expect(await at("label", "plan", "1", "warm")).toMatchObject({ entryId: "a1" });
  expect(await linesOf("tree", "plan", "--store", store)).toEqual([
    "0 user: Lisbon or Oslo?",
    "├─ 1 assistant: Lisbon. [warm]",
    "└─ 3 assistant: Oslo, of course. ← leaf",
  ]);
  expect(await at("show", "plan", "--at", "1")).toMatchObject({ entries: [{ id: "q" }, { id: "a1" }] });
  expect(await at("fork", "plan", "--at", "0", "early")).toMatchObject({ version: 1 });
  expect((await linesOf("export", "plan", "--leaf", "1", "--store", store)).join("\n")).not.toContain(
    "Oslo, of course.",
  );
  const turns = ["--strategy", "selective", "--turn", "4", "--turn", "99", "--dry-run"];
  expect(await at("merge", "plan", "plan-b", ...turns)).toMatchObject({
    appended: [{ id: "q2" }],
    skipped: [{ turnId: "99", reason: "unknown" }],
  });
  const missing = await runHere(["label", "plan", "9", "x", "--store", store]);
  expect([missing.code, missing.stderr]).toEqual([
    1,
    'There is no entry "9" in session plan; skein tree shows the numbers of its entries.\n',
  ]);
  const { leafId, nodes } = await jsonOf("tree", "plan", "--store", store);
  expect([leafId, nodes]).toMatchObject([
    "a2",
    [
      { id: "q", parentId: null, active: true, label: null },
      { id: "a1", parentId: "q", active: false, label: "warm" },
      { id: "a2", parentId: "q", active: true },
    ],
  ]);
});

test("label and rename set and remove, and reject contradictory arguments without writing", async () => {
  const store = await sampleStore();
  expect(await linesOf("label", "plan", "leaf", "end", "--store", store)).toEqual(["Entry a2 is labelled end."]);
  expect(await linesOf("label", "plan", "a2", "--remove", "--store", store)).toEqual(["Entry a2 has no label."]);
  expect(await linesOf("rename", "plan", "A trip", "--store", store)).toEqual(["Session plan is named A trip."]);
  for (const args of [["leaf"], ["leaf", "x", "--remove"]]) {
    expect((await runHere(["label", "plan", ...args, "--store", store])).code).toBe(2);
  }
  await using opened = await openStore(store);
  expect(await opened.head("plan")).toMatchObject({ name: "A trip", version: 7 });
});

test("fork begins at the leaf, at an entry or at a checkpoint", async () => {
  const store = await sampleStore();
  const { checkpoint } = (await jsonOf("checkpoint", "plan", "--note", "early", "--store", store)) as {
    checkpoint: { id: string };
  };
  expect((await linesOf("checkpoints", "plan", "--store", store))[1]).toMatch(/ 4 {2}no {5}early$/);
  const forked = await jsonOf("fork", "plan", "--checkpoint", checkpoint.id, "--store", store);
  expect(forked).toMatchObject({ parentSessionId: "plan", branchName: "fork", version: 4 });
  const early = await jsonOf("fork", "plan", "--at", "q", "early", "--store", store);
  expect(early).toMatchObject({ branchName: "early", version: 1 });
  const both = await runHere(["fork", "plan", "--at", "q", "--checkpoint", checkpoint.id, "--store", store]);
  expect(both).toMatchObject({ code: 2, stdout: "" });
  const missing = await runHere(["fork", "plan", "--checkpoint", "nowhere", "--store", store]);
  expect(missing).toMatchObject({ code: 1, stderr: 'There is no checkpoint "nowhere".\n' });
});

test("merge has a preview, appends, and is idempotent", async () => {
  const store = await sampleStore();
  const merge = (...args: string[]) => linesOf("merge", "plan", "plan-b", "--store", store, ...args);
  const would = ["+ message q2", "+ message a3", "Session plan would get 2 entries."];
  expect(await merge("--dry-run")).toEqual(would);
  expect(await merge("--dry-run")).toEqual(would);
  expect(await merge("--strategy", "selective", "--turn", "q2", "--turn", "x")).toEqual([
    "+ message q2",
    "skipped: x: unknown",
    "Session plan got 1 entry.",
  ]);
  expect(await merge("--strategy", "summary", "--dry-run")).toEqual([
    expect.stringMatching(/^\+ branch_summary /),
    expect.stringContaining("skipped: q2: present"),
    "Session plan would get 1 entry.",
  ]);
  expect(await merge()).toEqual(["+ message a3", "skipped: q2: present", "Session plan got 1 entry."]);
  expect((await merge()).at(-1)).toBe("Session plan got 0 entries.");
  expect(await runHere(["merge", "plan", "plan-b", "--turn", "q2", "--store", store])).toMatchObject({ code: 2 });
});

test("compact replaces the older part of the context by a summary, and undoes that", async () => {
  const store = await sampleStore();
  const compact = (...args: string[]) => linesOf("compact", "plan-b", "--store", store, ...args);
  expect(await compact()).toEqual(["Session plan-b is short enough; there is nothing to compact."]);
  expect(await compact("--keep-recent-tokens", "1")).toEqual([
    expect.stringMatching(
      /^The context of session plan-b, \d+ tokens, was compacted to a summary and the latest messages\.$/,
    ),
  ]);
  const shown = (await linesOf("show", "plan-b", "--store", store)).join("\n");
  expect(shown).toMatch(/\ncompaction of \d+ tokens: /);
  expect(await compact("--undo")).toEqual(["The last compaction of session plan-b was undone."]);
  const wrong = await runHere(["compact", "plan", "--model", "nowhere/x", "--store", store]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("anthropic, offline, openai") });
});

test("omit leaves an entry out or shortens it and prints the saved tokens, and undo-edit reverts that", async () => {
  const store = await sampleStore();
  const answer = async () => {
    await using opened = await openStore(store);
    const { messages } = await (await SessionTree.on(opened, "plan")).buildContext();
    return messages.map(({ content }) => content);
  };
  const before = await answer();
  const [leaf] = await jsonOf("tree", "plan", "--store", store).then(({ leafId }) => [leafId as string]);
  const preview = await jsonOf("omit", "plan", "leaf", "--preview", "--store", store);
  expect(preview).toMatchObject({ sessionId: "plan", entryId: leaf, edit: null, prefixLost: 0 });
  expect(await answer()).toEqual(before);
  expect(await linesOf("omit", "plan", "leaf", "--reason", "off topic", "--store", store)).toEqual([
    expect.stringMatching(
      /^Models do not see entry .+ as it was said any more: each later request has \d+ tokens fewer/,
    ),
  ]);
  expect(await answer()).toEqual(before.slice(0, -1));
  expect(await linesOf("undo-edit", "plan", "--store", store)).toEqual([
    expect.stringMatching(/^Edit .+ of session plan was undone\.$/),
  ]);
  expect(await answer()).toEqual(before);
  await linesOf("omit", "plan", leaf as string, "--text", "short", "--store", store);
  expect(await answer()).toEqual([...before.slice(0, -1), "short"]);
  const none = await runHere(["undo-edit", "plan-b", "--store", store]);
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining("has no edit to undo") });
});

test("cache explains what the answers read from a cache", async () => {
  const store = await sampleStore();
  const shown = (...args: string[]) => linesOf("cache", "plan", "--store", store, ...args);
  await using opened = await openStore(store);
  await opened.create(createHeader({ id: "empty" }));
  expect(await linesOf("cache", "empty", "--store", store)).toEqual([expect.stringContaining("nothing to explain")]);
  const usage = { inputTokens: 2000, outputTokens: 1, totalTokens: 2001, cacheReadTokens: 0, cacheWriteTokens: 2000 };
  const message = { role: "assistant", content: "b", provider: "anthropic", model: "claude-opus-5", usage } as const;
  await opened.append("plan", [
    { type: "message", message },
    { type: "message", message: { ...message, usage: { ...usage, cacheReadTokens: 2000 } } },
    { type: "message", message },
  ]);
  const lines = (await shown()).map((line) => line.replace(/^[-\dT:]{19} +/, ""));
  expect(lines[0]).toBe("Re-write factor 2.00: 4010 tokens were processed anew, the context has 2000.");
  expect(lines.slice(-2)).toEqual(["2000      2000  2000     0", "2000      2000     0  2000  an unknown cause"]);
  expect((await shown("--limit", "1")).length).toBe(lines.length - 4);
  const wrong = await runHere(["cache", "plan", "--lifetime", "soon", "--store", store]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("--lifetime") });
});

test("restore moves the leaf back, and deletes nothing", async () => {
  const store = await sampleStore();
  const { checkpoint } = (await jsonOf("checkpoint", "plan", "--store", store)) as { checkpoint: { id: string } };
  await using opened = await openStore(store);
  await opened.append("plan", [say("later")]);
  expect(await jsonOf("restore", checkpoint.id, "--store", store)).toEqual({
    sessionId: "plan",
    leafId: "a2",
    turnCount: 2,
    version: 6,
    kept: null,
  });
  expect(await opened.getEntry("plan", "later")).not.toBeNull();
});

test("checkpoint and restore include the files of the session's directory, or of the one that is named", async () => {
  vi.stubEnv("SKEIN_HOME", await makeDirectory());
  onTestFinished(() => void vi.unstubAllEnvs());
  const store = await sampleStore();
  const workspace = await makeDirectory();
  const plan = join(workspace, "plan.txt");
  const held = async (...args: string[]) =>
    (await jsonOf("checkpoint", ...args, "--files", "--store", store)) as { checkpoint: { id: string } };
  await writeFile(plan, "train");
  const { checkpoint } = await held("plan", "--workspace", workspace);
  expect((await linesOf("checkpoints", "plan", "--store", store))[1]).toMatch(/ 4 {2}yes *$/);
  await writeFile(plan, "boat");
  const restored = await jsonOf("restore", checkpoint.id, "--files", "--workspace", workspace, "--store", store);
  expect([await readFile(plan, "utf8"), restored["kept"]]).toMatchObject(["train", { sessionId: "plan" }]);
  const { id } = restored["kept"] as { id: string };
  const [, said] = await linesOf("restore", id, "--files", "--workspace", workspace, "--store", store);
  expect([await readFile(plan, "utf8"), said]).toEqual([
    "boat",
    expect.stringMatching(/^Its files were restored; checkpoint \S+ has the files from before\.$/),
  ]);

  await using opened = await openStore(store);
  const spec = { workingDir: workspace };
  await opened.create(createHeader({ id: "placed", sandbox: { backend: "local", spec, handleId: null } }));
  expect((await held("placed")).checkpoint).toMatchObject({ sandboxSnapshot: { backend: "local" } });
  const nowhere = await runHere(["checkpoint", "plan", "--files", "--store", store]);
  expect(nowhere).toMatchObject({ code: 1, stderr: 'Session "plan" has no place for files; leave them out.\n' });
  const ask = await runHere(["restore", id, "--workspace", workspace, "--store", store]);
  expect(ask).toMatchObject({ stdout: "", stderr: expect.stringContaining("add --files") });
});

test("stats sums up by day, model and user, within a period", async () => {
  const store = await sampleStore();
  const lines = await linesOf("stats", "--by", "user", "--by", "model", "--store", store);
  expect(lines).toEqual([
    "MODEL            SESSIONS  TURNS  TOOL CALLS  TOKENS  COST (USD)",
    "(none)                  2      2           0       0           –",
    "offline/offline         2      3           0      21      1.5000",
    "all                     2      5           0      21      1.5000",
    "",
    "USER  SESSIONS  TURNS  TOOL CALLS  TOKENS  COST (USD)",
    "ann          2      5           0      21      1.5000",
    "all          2      5           0      21      1.5000",
  ]);
  const past = await jsonOf("stats", "--to", "2001-01-01", "--store", store);
  expect(past).toMatchObject({ totals: { totalTurns: 0 }, byDay: [] });
  const wrong = await runHere(["stats", "--from", "yesterday", "--store", store]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--from is "yesterday"; give a date') });
});

test("delete removes all given sessions or none, and undelete restores them with their checkpoints", async () => {
  const store = await sampleStore();
  await jsonOf("checkpoint", "plan", "--store", store);
  const wrong = await runHere(["delete", "plan", "nowhere", "--store", store]);
  expect(wrong).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("skein list shows") });
  expect(await linesOf("delete", "plan", "plan-b", "plan", "--store", store)).toEqual([
    "deleted: plan",
    "deleted: plan-b",
  ]);
  expect(await runHere(["show", "last", "--store", store])).toMatchObject({ code: 1, stdout: "" });
  expect(await linesOf("undelete", "plan", "plan-", "--store", store)).toEqual(["restored: plan", "restored: plan-b"]);
  expect(await jsonOf("checkpoints", "plan", "--store", store)).toMatchObject({ checkpoints: [{ sessionId: "plan" }] });
});

test("prune archives and deletes old sessions, and purges them on request", async () => {
  const store = await sampleStore();
  const prune = (...args: string[]) => jsonOf("prune", "--store", store, ...args);
  expect(await prune("--older-than", "1d")).toMatchObject({ deleted: [] });
  expect(await prune("--older-than", "0s", "--status", "closed")).toMatchObject({ deleted: [] });
  const would = await prune("--older-than", "0s", "--dry-run");
  expect(would).toMatchObject({ dryRun: true, deleted: ["plan-b", "plan"], archived: 0 });
  const archive = `jsonl:${join(await makeDirectory(), "archive")}`;
  const done = await prune("--older-than", "0s", "--limit", "1", "--archive", archive);
  expect(done).toMatchObject({ dryRun: false, deleted: ["plan-b"], archived: 1, purged: 0 });
  expect(await jsonOf("list", "--store", archive)).toMatchObject({ sessions: [{ id: "plan-b" }] });
  expect(await prune("--purge", "7d")).toMatchObject({ purged: 0 });
  expect(await prune("--purge", "0d", "--vacuum")).toMatchObject({ deleted: [], purged: 1, vacuumed: true });
  expect(await prune("--older-than", "0s", "--purge", "1h")).toMatchObject({ deleted: ["plan"], purged: 0 });
  await jsonOf("undelete", "plan", "--store", store);
  expect(await prune("--older-than", "0s", "--purge", "0d")).toMatchObject({ deleted: ["plan"], purged: 1 });
  for (const args of [
    [],
    ["--older-than", "soon"],
    ["--purge", "0d", "--user", "ann"],
    ["--older-than", "99999999w"],
  ]) {
    expect([args, (await runHere(["prune", "--store", store, ...args])).code]).toEqual([args, 2]);
  }
  expect((await runHere(["prune", "--older-than", "1d", "--store", store, "--archive", store])).code).toBe(2);
});

test("only sweep expires sessions that were idle for too long", async () => {
  const store = await sampleStore(async (made) => {
    for (const id of ["new", "old"]) await made.create(createHeader({ id }));
  });
  tamper(store.slice("sqlite:".length), "UPDATE sessions SET updated_at = '2001-01-01T00:00:00.000Z' WHERE id = 'old'");
  expect(await linesOf("show", "old", "--store", store)).toEqual(["Session  old  active"]);
  const { sessionId } = await jsonOf("fork", "old", "--store", store);
  const merged = await linesOf("merge", "old", sessionId as string, "--store", store);
  expect(merged).toEqual(["Session old got 0 entries."]);
  expect(await linesOf("sweep", "--idle", "1w", "--store", store)).toEqual(["1 session expired."]);
  expect(await jsonOf("list", "--status", "expired", "--store", store)).toMatchObject({ sessions: [{ id: "old" }] });
  expect(await runHere(["merge", "old", "new", "--store", store])).toEqual({
    code: 1,
    stdout: "",
    stderr: "Session old has expired; fork it to continue.\n",
  });
  expect((await runHere(["sweep", "--idle", "0s", "--store", store])).code).toBe(2);
});
