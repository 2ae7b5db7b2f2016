import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  modelOf,
  nextEvent,
  resultsOf,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { entriesOf } from "../../test/sample-run-log.ts";
import { scripted } from "../models/scripted.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { answerIdOf } from "../session/log/open-runs.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { drainRuns } from "./active-runs.ts";
import { createAgent } from "./agent.ts";
import { pollFollowers } from "./persist/log-follower.ts";
import { resumeSession } from "./persist/resume-session.ts";
import type { Approval } from "../session/log/run-event.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";
import type { Tool } from "./tools/tool.ts";

const YES = { approved: true } as const;
const NO = { approved: false, reason: "No." } as const;

/** An answer as another process records it. */
function answerTo({ question, callId }: Approval, runId: string, decision: typeof YES | typeof NO): EntryDraft {
  return { type: "approval", id: answerIdOf(question), runId, callId, question, decision };
}

function paying(store: SessionStore, extras: Partial<Tool> = {}): { run: SessionRun; paid: string[] } {
  const paid: string[] = [];
  const pay = toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, {
    needsApproval: () => true,
    ...extras,
  });
  const model = scripted([calling(callOf("1", "pay", { amount: 5 })), "Done."]);
  return { run: runSessionLoop(asking(), someAgent(), { model, tools: [pay], persist: store }), paid };
}

describe("a question of a stored run", () => {
  test("is an entry with its own id and the call's details, and its answer refers to it", async () => {
    const store = openMemoryStore();
    const { run } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await run.approve(approval.question);
    await run;
    const { question, callId, ...asked } = approval;
    const [asks, answers] = (await entriesOf(store, run.id)).filter(({ type }) => type === "approval");
    expect(asks).toMatchObject({ id: question, runId: run.runId, callId, asked });
    expect(answers).toMatchObject({ id: answerIdOf(question), runId: run.runId, callId, question, decision: YES });
  });

  test("accepts the first answer, from any process, and refuses another", async () => {
    const store = openMemoryStore();
    const { run, paid } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await store.append(run.id, [answerTo(approval, run.runId, NO)]);
    await expect(run.approve(approval.question)).rejects.toMatchObject({ code: "ENTRY_EXISTS" });
    expect(resultsOf((await run).transcript)).toMatchObject([{ error_kind: "denied", message: "No." }]);
    await expect(store.append(run.id, [answerTo(approval, run.runId, YES)])).rejects.toMatchObject({
      code: "ENTRY_EXISTS",
    });
    expect([paid, run.status]).toEqual([[], "finished"]);
  });

  test("is not asked again by a resume, and is answered there under the same id", async () => {
    const store = openMemoryStore();
    const { run } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await drainRuns({ timeoutMs: 0, ids: [run.id] });
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
    const again = runSessionLoop(user, agent, { model: scripted(["Done."]), tools: [pay], persist: store });
    expect((await nextEvent(again, "approval-required")).approval).toEqual(approval);
    await again.approve(approval.question);
    expect(resultsOf((await again).transcript)).toEqual(["paid"]);
    const types = (await entriesOf(store, run.id)).map(({ type }) => type);
    expect(types.filter((type) => type === "approval")).toHaveLength(2);
  });

  test("that was answered while no process held the run is not asked again by a resume", async () => {
    const store = openMemoryStore();
    const { run } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await drainRuns({ timeoutMs: 0, ids: [run.id] });
    await store.append(run.id, [answerTo(approval, run.runId, YES)]);
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
    const again = runSessionLoop(user, agent, { model: scripted(["Done."]), tools: [pay], persist: store });
    expect(resultsOf((await again).transcript)).toEqual(["paid"]);
    expect((await eventsOf(again)).some(({ type }) => type === "approval-required")).toBe(false);
  });

  test("of an earlier round is not answered by a reused call id", async () => {
    const store = openMemoryStore();
    const paid: string[] = [];
    const pay = toolOf("pay", (_args, { callId }) => paid.push(callId), { needsApproval: () => true });
    const model = scripted([calling(callOf("1", "pay")), calling(callOf("1", "pay")), "Done."]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [pay], persist: store });
    const first = await nextEvent(run, "approval-required");
    await run.approve(first.approval.question);
    await nextEvent(run, "approval-required", ({ round }) => round === 2);
    await expect(run.approve(first.approval.question)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(paid).toEqual(["1"]);
    await run.deny("1");
    await run;
    expect(paid).toEqual(["1"]);
  });
});

test("a call id for which two runs wait is ambiguous and refused, and each question is answered by its own id", async () => {
  const shell = toolOf("shell", (_args, { callId }) => callId, { needsApproval: () => true });
  const ask = toolOf("ask", async () => {
    const model = scripted([calling(callOf("1", "shell")), "Asked."]);
    return (await createAgent({ prompt: "", model, tools: [shell] }).run("Go.")).text();
  });
  const model = scripted([calling(callOf("a", "ask"), callOf("b", "ask")), "Done."]);
  const run = runSessionLoop(asking(), someAgent(), { model, tools: [ask] });
  await nextEvent(run, "approval-required");
  await expect.poll(() => run.pendingApprovals.length).toBe(2);
  const [one, two] = run.pendingApprovals as [Approval, Approval];
  expect([one.callId, two.callId, one.innerRunId === two.innerRunId]).toEqual(["1", "1", false]);
  await expect(run.approve("1")).rejects.toMatchObject({ code: "INVALID_OPTION", message: /name the question/ });
  await run.approve(two.question);
  await run.approve("1");
  expect(resultsOf((await run).transcript)).toEqual(["Asked.", "Asked."]);
});

/** Stores, each with the one that another process would have. */
const pairs: Readonly<Record<string, () => Promise<[own: SessionStore, others: SessionStore]>>> = {
  "memory, which pushes": async () => {
    const store = openMemoryStore();
    return [store, store];
  },
  "sqlite, which is asked": async () => {
    const directory = await mkdtemp(join(tmpdir(), "skein-ears-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const open = (): Promise<SessionStore> => openSqliteStore({ path: join(directory, "skein.db") });
    const both: [SessionStore, SessionStore] = [await open(), await open()];
    onTestFinished(async () => void (await Promise.all(both.map((store) => store.close()))));
    return both;
  },
};

describe.each(Object.entries(pairs))("a run in a store of %s receives from other processes", (_, open) => {
  test("the answer to its question", async () => {
    const [store, others] = await open();
    const { run, paid } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await others.append(run.id, [answerTo(approval, run.runId, YES)]);
    expect(resultsOf((await run).transcript)).toEqual(["paid 1"]);
    expect(paid).toEqual(["1"]);
  });

  test("a cancel, in the middle of an answer", async () => {
    const [store, others] = await open();
    const model = modelOf(
      (_request, options) =>
        new Promise((_, reject) => {
          options?.signal?.addEventListener("abort", () => reject(options.signal?.reason), { once: true });
        }),
    );
    const run = runSessionLoop(asking(), someAgent(), { model, persist: store });
    await run.admitted;
    await others.append(run.id, [{ type: "cancel", runId: run.runId, reason: "Enough." }]);
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "Enough." });
    expect(run.status).toBe("aborted");
    const end = (await entriesOf(others, run.id)).findLast(({ type }) => type === "run");
    expect([end, (await others.head(run.id))?.openRuns]).toMatchObject([{ phase: "cancelled" }, []]);
  });

  test("their input, once for each entry, and none for another run", async () => {
    const [store, others] = await open();
    const [waits, asked] = [gate(), gate()];
    const answers = [asked.pass.then(() => calling(callOf("1", "look"))), Promise.resolve(saying("Done."))];
    const model = modelOf(() => {
      waits.open();
      return answers.shift() as Promise<ReturnType<typeof saying>>;
    });
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")], persist: store });
    await waits.pass;
    const says = (runId: string, content: string): EntryDraft => ({ type: "queued", runId, kind: "steer", content });
    await others.append(run.id, [says(run.runId, "Hurry."), says("another", "Not you.")]);
    await run.steer("Please.");
    asked.open();
    expect(shortly((await run).transcript)).toEqual([
      "user: Do it.",
      "assistant: [look]",
      "tool: done",
      "user: Hurry.",
      "user: Please.",
      "assistant: Done.",
    ]);
  });

  test("without a delay what its own process has appended", async () => {
    const [store] = await open();
    const { run } = paying(store);
    const { approval } = await nextEvent(run, "approval-required");
    await store.append(run.id, [answerTo(approval, run.runId, YES)]);
    await pollFollowers(store, run.id);
    expect(run.pendingApprovals).toEqual([]);
    await run;
  });
});

test("a short run never reads others' input, and a run that ended stops reading", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-ears-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await using store = await openSqliteStore({ path: join(directory, "skein.db") });
  let asked = 0;
  const counted = new Proxy(store, {
    get: (target, name) => {
      if (name === "heads") asked += 1;
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  await runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]), persist: counted });
  const { run } = paying(counted);
  const { approval } = await nextEvent(run, "approval-required");
  expect(asked).toBe(0);
  await expect.poll(() => asked).toBeGreaterThan(0);
  await run.approve(approval.question);
  await run;
  const before = asked;
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect(asked).toBe(before);
});
