import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAgent, type Session } from "../../src/index.ts";
import { workspaceTools } from "../../src/sandboxes/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { scripted } from "../../src/models/scripted.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { calling, callOf, toolOf } from "../sample-run.ts";
import { type Ended, jsonOf, runHere, runProcess } from "./run-skein.ts";

interface Place {
  readonly store: string;
  readonly workspace: string;
}

/** A store with a session for each user, each with a requested run that has not started. */
async function requested(...users: readonly string[]): Promise<Place> {
  const workspace = await makeDirectory();
  const path = join(await makeDirectory(), "skein.db");
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  for (const user of users) {
    await store.create(createHeader({ id: `of-${user}`, userId: user, cwd: workspace }));
    const request = { input: `write hello to ${user}.txt`, runId: `run-${user}`, agent: "skein" };
    await manager.request(`of-${user}`, request, { actor: user });
  }
  return { store: `sqlite:${path}`, workspace };
}

/** The same after a process has started the runs, parked them with a question, and ended. */
async function parked(...users: readonly string[]): Promise<Place> {
  const place = await requested(...users);
  for (const user of users) await recover(place, `of-${user}`);
  return place;
}

function recover({ store, workspace }: Place, ...args: readonly string[]): Promise<Ended> {
  return runProcess("recover", ...args, "--store", store, "--workspace", workspace);
}

async function jsonAt<T = unknown>({ store }: Place, ...args: readonly string[]): Promise<T> {
  return (await jsonOf(...args, "--store", store)) as T;
}

async function linesOf({ store }: Place, ...args: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runHere([...args, "--store", store]);
  expect([args, code, stderr]).toEqual([args, 0, ""]);
  return stdout.trimEnd().split("\n");
}

test("one process requests a run, another starts and parks it, a third approves, and a fourth finishes it", async () => {
  const place = await requested("ann");
  const asked = await recover(place, "of-ann");
  expect([asked.code, asked.stdout]).toEqual([
    0,
    expect.stringContaining("The run is parked until its questions are answered"),
  ]);
  expect(existsSync(join(place.workspace, "ann.txt"))).toBe(false);
  const approved = await runProcess("approve", "of-ann", "--note", "checked", "--store", place.store);
  expect(approved).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /^Approved: write_workspace_file \{"path":"ann\.txt".* in \S+\.\nA server .* run skein recover of-ann\.\n$/,
    ),
    stderr: "",
  });
  const done = await recover(place, "of-ann");
  expect([done.code, done.stderr]).toEqual([0, ""]);
  expect(await readFile(join(place.workspace, "ann.txt"), "utf8")).toBe("hello");
  expect(await linesOf(place, "runs")).toEqual(["No run is open."]);
  const shown = (await linesOf(place, "show", "of-ann")).join("\n");
  expect(shown).toMatch(/tool write_workspace_file .*\napproved by local \S+: checked\n/);
  expect(shown).toMatch(/^user {2}\S+ {2}run:run-ann\/input {2}by ann$/m);
});

test("an approval for one directory does not hold in another: the call is asked about again", async () => {
  const place = await parked("ann");
  const elsewhere = { ...place, workspace: await makeDirectory() };
  await linesOf(place, "approve", "of-ann");
  expect((await recover(elsewhere, "of-ann")).stdout).toContain("The run is parked until its questions are answered");
  expect(existsSync(join(elsewhere.workspace, "ann.txt"))).toBe(false);
  expect((await linesOf(place, "approvals"))[1]).toContain(`in ${elsewhere.workspace}`);
  await linesOf(place, "approve", "of-ann");
  expect((await recover(elsewhere, "of-ann")).code).toBe(0);
  expect(existsSync(join(elsewhere.workspace, "ann.txt"))).toBe(true);
});

test("a denied call does not run, and the model gets the reason", async () => {
  const place = await parked("ann");
  const denied = await jsonAt(place, "deny", "of-ann", "--reason", "Not today.", "--note", "a test");
  expect(denied).toMatchObject({ sessionId: "of-ann", runId: "run-ann", approved: false, waiting: 0 });
  expect((await recover(place, "--all")).code).toBe(0);
  expect(existsSync(join(place.workspace, "ann.txt"))).toBe(false);
  const shown = (await linesOf(place, "show", "of-ann")).join("\n");
  expect(shown).toMatch(
    /tool, failed write_workspace_file .*\ndenied by local \S+: Not today\.: a test\n.*Not today\./,
  );
});

test("lists several questions of a session, and answers each by its number or a prefix of its id", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const place = { store: `sqlite:${path}`, workspace: await makeDirectory() };
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  await store.create(createHeader({ id: "s" }));
  const commands = ["one", "two"].map((name) => callOf(name, "run_shell_command", { command: `touch ${name}` }));
  const agent = createAgent({
    name: "skein",
    prompt: "",
    model: scripted([calling(...commands)]),
    tools: workspaceTools,
    builtInTools: false,
  });
  const inWorkspace = (session: Session): Session => session.to("local", place.workspace);
  const run = manager.run("s", agent, "Go", { place: inWorkspace, ask: "writes", park: { afterMs: 0 } });
  expect([await run.synchronize(), run.status]).toEqual([expect.anything(), "parked"]);
  const { questions } = await jsonAt<{ questions: { number: number; question: string }[] }>(place, "approvals");
  expect(questions.map(({ number }) => number)).toEqual([1, 2]);
  const unnamed = await runHere(["approve", "s", "--store", place.store]);
  expect(unnamed).toMatchObject({ code: 2, stdout: "" });
  expect(unnamed.stderr).toMatch(
    /^Session s has 2 open questions: name one of 1 \(.*touch one.*\), 2 \(.*touch two.*\)\.\n$/,
  );
  const nowhere = await runHere(["deny", "s", "3", "--store", place.store]);
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Session s has no open question "3"; /) });
  expect(await jsonAt(place, "approve", "s", "2")).toMatchObject({ question: questions[1]?.question, waiting: 1 });
  expect((await linesOf(place, "approve", "s", String(questions[0]?.question)))[0]).toMatch(/touch one/);
  expect((await recover(place, "s", "--model", "offline")).code).toBe(0);
  expect(["one", "two"].map((name) => existsSync(join(place.workspace, name)))).toEqual([true, true]);
});

test("lists since when a run has been open that nobody requested, and which program it waits for after an answer", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const place = { store: `sqlite:${path}`, workspace: await makeDirectory() };
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  await store.create(createHeader({ id: "s" }));
  const model = scripted([calling(callOf("c", "run_shell_command", { command: "ls" }))]);
  const agent = createAgent({ name: "keeper", prompt: "", model, tools: workspaceTools, builtInTools: false });
  const { questions } = await manager.run("s", agent, "Go", { ask: "writes", workspace: place.workspace });
  await manager.approve("s", questions[0]?.question ?? "");
  const [, line] = await linesOf(place, "runs");
  expect(line).toMatch(/^s +\S+ +requested +keeper +\d{4}-\d\d-\d\d \d\d:\d\d +its turn in a program that has keeper$/);
});

test("lists the question of a run that has not parked, and delivers the answer to the process that runs it", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const place = { store: `sqlite:${path}`, workspace: await makeDirectory() };
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  await store.create(createHeader({ id: "s" }));
  const write = callOf("one", "write_workspace_file", { path: "a.txt", content: "Hi." });
  const model = scripted([calling(write), "Done."]);
  const agent = createAgent({ prompt: "", model, tools: workspaceTools, builtInTools: false });
  const inWorkspace = (session: Session): Session => session.to("local", place.workspace);
  const run = manager.run("s", agent, "Go", { place: inWorkspace, ask: "always", park: false });
  await expect.poll(async () => (await linesOf(place, "approvals")).length).toBe(2);
  expect((await linesOf(place, "approvals"))[1]).toMatch(/^s +1 +write_workspace_file /);
  expect((await linesOf(place, "runs"))[1]).toMatch(/^s .* running .*an answer: write_workspace_file$/);
  expect((await linesOf(place, "list"))[1]).toContain("active, asks");
  expect((await linesOf(place, "show", "s")).join("\n")).toContain("waits for an answer: see skein approvals.");
  expect((await linesOf(place, "approve", "s"))[1]).toBe("The run continues.");
  expect((await run).status).toBe("finished");
  expect(existsSync(join(place.workspace, "a.txt"))).toBe(true);
});

test("approvals lists the questions of all sessions, list marks those sessions, and show names their open runs", async () => {
  const place = await parked("ann", "ben");
  expect(await linesOf(place, "approvals")).toEqual([
    expect.stringMatching(/^SESSION +NO +TOOL +ARGUMENTS +REACHES +ASKED +EXPIRES$/),
    ...["ben", "ann"].map((user) =>
      expect.stringMatching(
        `^of-${user} +1 +write_workspace_file +\\{"path":"${user}\\.txt".*\\} +in \\S+ +[-\\d: ]{16} +never$`,
      ),
    ),
  ]);
  const { questions } = await jsonAt<{ questions: object[] }>(place, "approvals", "--user", "ann");
  expect(questions).toEqual([
    expect.objectContaining({
      sessionId: "of-ann",
      number: 1,
      runId: "run-ann",
      by: "ann",
      agent: "skein",
      name: "write_workspace_file",
      arguments: { path: "ann.txt", content: "hello" },
      expiresAt: null,
    }),
  ]);
  expect((await linesOf(place, "list"))[1]).toMatch(/^of-\w+ .* active, asks +\d/);
  expect((await linesOf(place, "show", "of-ben"))[1]).toBe("Run run-ben waits for an answer: see skein approvals.");
  const few = await runHere(["approvals", "--limit", "1", "--store", place.store]);
  expect(few.stderr).toBe("There are more; give a larger --limit.\n");
});

test("runs lists the state of each run, who requested it, and what it waits for, for all sessions or one", async () => {
  const place = await parked("ann");
  const path = place.store.slice("sqlite:".length);
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  await store.create(createHeader({ id: "later", userId: "eve" }));
  const notBefore = "2100-01-01T10:30:00.000Z";
  await manager.request("later", { input: "Hello", runId: "run-later", notBefore }, { actor: "eve" });
  await store.create(createHeader({ id: "dead" }));
  await store.append("dead", [{ type: "run", runId: "run-dead", phase: "started", claim: 1 }]);
  const table = await linesOf(place, "runs");
  expect(table).toEqual([
    expect.stringMatching(/^SESSION +RUN +STATE +AGENT +SINCE +BY +WAITS FOR$/),
    expect.stringMatching(/^of-ann +run-ann +parked +skein +[-\d: ]{16} +ann +an answer: write_workspace_file$/),
    expect.stringMatching(/^dead +run-dead +interrupted +skein recover --agent$/),
    expect.stringMatching(/^later +run-later +requested +[-\d: ]{16} +eve +2100-01-01 10:30$/),
  ]);
  const [, ...later] = await linesOf(place, "runs", "later");
  expect(later).toEqual([expect.stringMatching(/^later +run-later +requested /)]);
  expect(await jsonAt(place, "runs", "--state", "interrupted")).toMatchObject({
    runs: [{ runId: "run-dead" }],
    more: false,
  });
  expect(await jsonAt(place, "runs", "of-ann", "--state", "requested")).toEqual({ runs: [], more: false });
});

/** A run of the agent `payer`, of a program that is not here. */
async function ofPayer(state: "asking" | "interrupted"): Promise<Place> {
  const path = join(await makeDirectory(), "skein.db");
  await using store = await openSqliteStore({ path });
  await using manager = new SessionManager({ store });
  const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
  const agent = createAgent({
    name: "payer",
    prompt: "",
    model: scripted([calling(callOf("c", "pay"))]),
    tools: [pay],
  });
  await store.create(createHeader({ id: "s", userId: "ann" }));
  if (state === "asking") await manager.run("s", agent, "Pay.", { runId: "r" });
  else await store.append("s", [{ type: "run", runId: "r", phase: "started", claim: 0, agent: "payer" }]);
  return { store: `sqlite:${path}`, workspace: path };
}

test("approve names the agent whose program continues the run", async () => {
  expect(await linesOf(await ofPayer("asking"), "approve", "s")).toEqual([
    "Approved: pay {}; nothing is known of what it can reach.",
    "A program, server or worker that has payer continues the run; so does skein recover s --agents FILE here.",
  ]);
});

test("cancel ends a run whose program has died, so that it waits for no agent any more", async () => {
  const place = await ofPayer("interrupted");
  expect(await linesOf(place, "cancel", "s")).toEqual(["Run r of session s is cancelled."]);
  expect(await linesOf(place, "runs")).toEqual(["No run is open."]);
});

test("cancel stops a waiting run, lists the candidates of an ambiguous id, and reports if no run is open", async () => {
  const place = await parked("ann");
  expect(await jsonAt(place, "cancel", "of-ann", "run-", "--reason", "No need.")).toEqual({
    sessionId: "of-ann",
    runId: "run-ann",
  });
  const again = await runHere(["cancel", "of-ann", "--store", place.store]);
  expect(again).toEqual({ code: 1, stdout: "", stderr: "No run of session of-ann is open.\n" });
  const late = await runHere(["approve", "of-ann", "--store", place.store]);
  expect(late).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^No call of session of-ann waits for approval;/),
  });
  await using store = await openSqliteStore({ path: place.store.slice("sqlite:".length) });
  const head = await store.head("of-ann");
  for await (const last of store.read("of-ann", { reverse: true, limit: 1 })) {
    expect([head?.openRuns, last]).toMatchObject([[], { type: "cancel", by: "local", reason: "No need." }]);
  }
});
