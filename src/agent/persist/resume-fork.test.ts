import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../../test/counted-sandbox.ts";
import { message, user as said } from "../../../test/sample-log.ts";
import { asking, callOf, calling, inShort, nextEvent, saying, someAgent, toolOf } from "../../../test/sample-run.ts";
import { backends } from "../../../test/store-backends.ts";
import { BranchManager } from "../../lifecycle/merge/branch-manager.ts";
import { scripted } from "../../models/scripted.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { resumeSession } from "./resume-session.ts";
import { resumeStateOf } from "./resume-state.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { SessionRun } from "../session-run.ts";
import type { Tool } from "../tools/tool.ts";

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-fork-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const embedded = backends.filter(({ name }) => /^(?:memory|jsonl|sqlite)/.test(name));

/** A run that is in the middle of a call, of which it counts how often it ran. */
async function runInCall(
  store: SessionStore,
  extras: Partial<Tool> = {},
): Promise<{ run: SessionRun; tool: Tool; ran: () => number; go: () => void }> {
  const held = gate();
  let ran = 0;
  const execute = async (): Promise<string> => {
    ran += 1;
    await held.pass;
    return "paid";
  };
  const tool = toolOf("pay", execute, extras);
  const model = scripted([calling(callOf("c1", "pay")), saying("Paid.")]);
  const run = runSessionLoop(asking(), someAgent(), { model, tools: [tool], builtInTools: false, persist: store });
  await nextEvent(run, extras.needsApproval === undefined ? "tool-started" : "approval-required");
  return { run, tool, ran: () => ran, go: () => held.open() };
}

describe.each(embedded)("a fork made in the middle of a run, in a $name store", ({ open }) => {
  test("does not continue the run, answers the open call instead of running it, and leaves the original alone", async () => {
    await using store = await open(await makeDirectory());
    const { run, tool, ran, go } = await runInCall(store);
    const { sessionId } = await new BranchManager(store).fork(run.id, "meanwhile");
    expect((await store.head(sessionId))?.openRuns).toEqual([]);
    expect((await store.head(run.id))?.openRuns).toHaveLength(1);

    const { user, agent } = await resumeSession({ store, sessionId });
    const model = scripted([saying("I shall check.")]);
    const persist = { store, sessionId };
    const forked = await runSessionLoop(user, agent, { model, tools: [tool], builtInTools: false, persist });
    expect(forked.transcript.toMessages().map(inShort).at(-1)).toBe("assistant: I shall check.");
    expect(forked.transcript.toMessages().at(-2)).toMatchObject({ role: "tool", toolCallId: "c1" });
    expect(JSON.stringify(model.requests[0]?.messages.at(-1))).toContain("interrupted");
    expect(ran()).toBe(1);

    go();
    expect((await run).transcript.toMessages().map(inShort).at(-1)).toBe("assistant: Paid.");
    expect(ran()).toBe(1);
  });
});

test("a call that waits for approval where a fork is made can be approved there, and is not asked about in the fork", async () => {
  await using store = openMemoryStore();
  const { run, tool, ran, go } = await runInCall(store, { needsApproval: () => true });
  await run.followUp("And say when.");
  const { sessionId } = await new BranchManager(store).fork(run.id, "meanwhile");
  const { user, agent } = await resumeSession({ store, sessionId });
  expect(resumeStateOf(user.transcript)).toMatchObject({ effects: new Set([0]), approvals: new Map(), queued: [] });
  const options = { tools: [tool], builtInTools: false as const, persist: { store, sessionId } };
  const forked = runSessionLoop(user, agent, { ...options, model: scripted([saying("Not paid.")]) });
  expect((await forked).transcript.toMessages().map(inShort).at(-1)).toBe("assistant: Not paid.");
  expect(ran()).toBe(0);
  run.abort();
  await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  go();
});

test("the next message in such a fork is sent to the model with a result for each call", async () => {
  await using store = openMemoryStore();
  const { run, ran, go } = await runInCall(store);
  const { sessionId } = await new BranchManager(store).fork(run.id, "meanwhile");
  const model = scripted([saying("Here.")]);
  await runSessionLoop(asking("Are you there?"), someAgent(), { model, persist: { store, sessionId } });
  const messages = model.requests[0]?.messages ?? [];
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"]);
  expect(messages[3]).toMatchObject({ toolCallId: "c1" });
  go();
  await run;
  expect(ran()).toBe(1);
});

test("a session made of the path to a call does not run that call", async () => {
  await using store = openMemoryStore();
  const { run, ran, go } = await runInCall(store);
  const tree = await SessionTree.on(store, run.id);
  const branched = await tree.createBranchedSession(tree.head.leafId ?? "");
  const { user } = await resumeSession({ store: branched.store, sessionId: branched.id });
  expect(resumeStateOf(user.transcript)?.effects).toEqual(new Set([0]));
  go();
  await run;
  expect(ran()).toBe(1);
});

test("an inherited call never runs in the fork, whatever has started and was asked since", async () => {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "a" }));
  const calls = { role: "assistant", content: null, toolCalls: [callOf("c1", "pay")] } as const;
  await store.append("a", [message("one", said("Pay.")), message("two", calls)]);
  await store.fork("a", createHeader({ id: "f" }));
  const asked = { type: "approval", runId: "r2", callId: "c1" } as const;
  await store.append("f", [{ type: "run", runId: "r2", phase: "started" }, asked]);
  const { user } = await resumeSession({ store, sessionId: "f" });
  expect(resumeStateOf(user.transcript)).toMatchObject({ inherited: true, approvals: new Map() });
});
