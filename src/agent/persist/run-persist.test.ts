import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../../test/counted-sandbox.ts";
import { usage } from "../../../test/sample-log.ts";
import {
  asking,
  callOf,
  calling,
  inShort,
  modelOf,
  nextEvent,
  resultsOf,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../../test/sample-run.ts";
import { backends } from "../../../test/store-backends.ts";
import { scripted } from "../../models/scripted.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { loadSession } from "../../tree/persisted-session.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { drainRuns } from "../active-runs.ts";
import { QUEUED_KEY } from "../../session/log/run-fold.ts";
import { resumeSession } from "./resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-run-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

const inWords = (entry: Entry): string => {
  if (entry.type === "message") return inShort(entry.message);
  if (entry.type === "run") return `run ${entry.phase}`;
  if (entry.type === "queued") return `queued ${entry.kind}`;
  return "callId" in entry ? `${entry.type} ${entry.callId}` : entry.type;
};

const asks = { needsApproval: () => true };

describe.each(backends)("a run stored in a $name store", ({ open }) => {
  async function openStore(): Promise<SessionStore> {
    const store = await open(await makeDirectory());
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  }

  test("every row and every effect is recorded before the run continues", async () => {
    const store = await openStore();
    const seen: string[][] = [];
    const note = async (id: string) => void seen.push((await entriesOf(store, id)).map(inWords));
    const look = toolOf("look", (_args, { session }) => note(session.id));
    const safe = toolOf("safe", () => "ok", { idempotent: true });
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([
        calling(callOf("a", "look"), callOf("b", "safe")),
        async () => {
          await note(run.id);
          return saying("Done.", { usage: usage(10, 2) });
        },
      ]),
      tools: [look, safe],
      persist: store,
    });
    const session = await run;
    const start = ["user: Do it.", "variables", "setup", "run started"];
    const first = [...start, "assistant: [look] [safe]", "effect a"];
    expect(seen[0]).toEqual(first);
    const second = [...first, 'tool: {"ok":true}', "tool: ok"];
    expect(seen[1]).toEqual(second);
    const all = await entriesOf(store, run.id);
    expect(all.map(inWords)).toEqual([...second, "assistant: Done.", "run finished"]);
    expect(all.at(-1)).toMatchObject({ phase: "finished", usage: usage(10, 2) });
    const rows = all.flatMap((entry) => (entry.type === "message" ? [entry.id] : []));
    expect(rows).toEqual(session.transcript.rows.map(({ id }) => id));
  });

  test("a following run is a fork by reference, and a failed one records its failure", async () => {
    const store = await openStore();
    const first = await runSessionLoop(asking(), someAgent(), { model: scripted(["One."]), persist: store });
    const second = runSessionLoop(first, someAgent(), { model: scripted([new Error("Gone.")]), persist: store });
    await expect(second.synchronize()).rejects.toThrow("Gone.");
    const head = await store.head(second.id);
    expect(head?.header.forkedFrom).toMatchObject({ sessionId: first.id });
    expect((await entriesOf(store, second.id)).at(-1)).toMatchObject({
      type: "run",
      phase: "failed",
      error: { name: "Error", message: "Gone." },
    });
  });

  test("input is recorded before it is accepted, and a crashed run delivers it when it is resumed", async () => {
    const store = await openStore();
    const run = runSessionLoop(asking(), someAgent(), { model: modelOf(() => new Promise(() => {})), persist: store });
    await run.steer("At once.");
    const queued = (await entriesOf(store, run.id)).filter(({ type }) => type === "queued");
    expect(queued).toMatchObject([{ kind: "steer", content: "At once." }]);
    await nextEvent(run, "round-started");
    await run.steer("Faster.");
    await run.followUp("And then?");
    await drainRuns({ timeoutMs: 0 });
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const model = scripted(["Would stop.", "Stops."]);
    const session = await runSessionLoop(user, agent, { model, persist: { store, sessionId: run.id } });
    const said = shortly(session.transcript);
    expect(said.slice(-4)).toEqual(["user: Faster.", "assistant: Would stop.", "user: And then?", "assistant: Stops."]);
    expect(said.filter((text) => text === "user: At once.")).toHaveLength(1);
    const last = session.transcript.at(-2)?.message;
    const entry = (await entriesOf(store, run.id)).find((each) => each.type === "queued" && each.kind === "followUp");
    expect(last?.metadata?.[QUEUED_KEY]).toBe(entry?.id);
    const again = await resumeSession({ store, sessionId: run.id });
    const next = scripted(["Nothing new."]);
    await runSessionLoop(again.user, again.agent, { model: next, persist: { store, sessionId: run.id } });
    expect(next.requests).toHaveLength(1);
  });

  test("approvals are recorded with the question and the answer, and a resume asks only open questions", async () => {
    const store = await openStore();
    const ran: string[] = [];
    const pay = toolOf("pay", (_args, { callId }) => `paid ${ran.push(callId)}`, asks);
    const options = { tools: [pay] };
    const run = runSessionLoop(asking(), someAgent(), {
      ...options,
      model: scripted([calling(callOf("1", "pay"), callOf("2", "pay"), callOf("3", "pay"))]),
      persist: store,
    });
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "3");
    await run.approve("2");
    await run.deny("3", "Too much.");
    await drainRuns({ timeoutMs: 0 });
    expect(ran).toEqual([]);
    const approvals = (await entriesOf(store, run.id)).filter(({ type }) => type === "approval");
    expect(approvals.map((entry) => (entry.type === "approval" ? [entry.callId, entry.decision] : []))).toEqual([
      ["1", undefined],
      ["2", undefined],
      ["3", undefined],
      ["2", { approved: true }],
      ["3", { approved: false, reason: "Too much." }],
    ]);
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const resumed = runSessionLoop(user, agent, {
      ...options,
      model: scripted(["Done."]),
      persist: { store, sessionId: run.id },
    });
    await nextEvent(resumed, "approval-required");
    expect(resumed.pendingApprovals.map(({ callId }) => callId)).toEqual(["1"]);
    await resumed.approve("1");
    const session = await resumed;
    expect(ran).toEqual(["1", "2"]);
    expect(resultsOf(session.transcript)).toEqual([
      "paid 1",
      "paid 2",
      { ok: false, error_kind: "denied", message: "Too much." },
    ]);
  });

  test("a run that stopped during its calls continues there, and repeats only idempotent calls", async () => {
    const store = await openStore();
    const ran: string[] = [];
    const { pass, open: letGo } = gate();
    const record = (name: string) => (): unknown => {
      ran.push(name);
      return name === "quick" ? "was quick" : pass;
    };
    const tools = [
      toolOf("quick", record("quick")),
      toolOf("once", record("once")),
      toolOf("often", record("often"), { idempotent: true }),
      toolOf("later", record("later"), { exclusive: true }),
    ];
    const names = ["once", "quick", "often", "later"];
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(...names.map((name) => callOf(name, name)))]),
      tools,
      persist: store,
    });
    await expect.poll(() => ran.length).toBe(3);
    await new Promise((resolve) => setImmediate(resolve));
    await drainRuns({ timeoutMs: 0 });
    letGo();
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const model = scripted(["Done."]);
    const session = await runSessionLoop(user, agent, { model, tools, persist: { store, sessionId: run.id } });
    expect(ran).toEqual(["once", "quick", "often", "often", "later"]);
    const answers = new Map(
      session.transcript
        .toMessages()
        .flatMap((message) => (message.role === "tool" ? [[message.toolCallId, message.content]] : [])),
    );
    expect(answers.get("quick")).toBe("was quick");
    expect(answers.get("once")).toContain('"error_kind":"interrupted"');
    expect([...answers.keys()].sort()).toEqual([...names].sort());
    expect(model.requests[0]?.messages.filter(({ role }) => role === "tool")).toHaveLength(4);
  });
});

test("a run continues in a tree after its existing messages", async () => {
  const tree = await SessionTree.inMemory("/project");
  await tree.appendMessage({ role: "user", content: "Before." });
  await tree.appendMessage({ role: "assistant", content: "Indeed." });
  const model = scripted(["Now."]);
  const session = await runSessionLoop(asking("And now?"), someAgent(), { model, persist: tree });
  expect(model.requests[0]?.messages.map(inShort)).toEqual([
    "system: Be brief.",
    "user: Before.",
    "assistant: Indeed.",
    "user: And now?",
  ]);
  expect(shortly(session.transcript)).toHaveLength(4);
  expect((await tree.buildContext()).messages.map(inShort)).toEqual(shortly(session.transcript));
});

test("the file of a run gets its final name when the run finishes, and keeps the partial one when it is stopped", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "run.jsonl");
  const options = { persist: path };
  const run = runSessionLoop(asking(), someAgent(), {
    ...options,
    model: scripted([
      async function* () {
        yield { type: "text-delta", text: "Half an ans" };
        await new Promise(() => {});
      },
    ]),
  });
  await nextEvent(run, "text-delta");
  run.abort("enough");
  await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
  expect((await readdir(directory)).filter((name) => name.includes("__partial__"))).toHaveLength(1);
  const partial = await loadSession(path);
  expect(partial.closed).toBe(false);
  expect(partial.transcript.at(-1)?.message).toMatchObject({ content: "Half an ans", stopReason: "aborted" });
  const { user, agent } = await resumeSession(path);
  const session = await runSessionLoop(user, agent, { ...options, model: scripted(["A whole answer."]) });
  const whole = await loadSession(path);
  expect(whole.closed).toBe(true);
  expect(whole.transcript.toMessages().map(inShort)).toEqual(shortly(session.transcript));
});

test("a store failure ends the run with its error, and no event is emitted for an entry that was not recorded", async () => {
  const store = openMemoryStore();
  const failure = new Error("The disk is full.");
  let appends = 0;
  const failing = new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key !== "append" || typeof value !== "function")
        return typeof value === "function" ? value.bind(target) : value;
      return (...args: unknown[]) => {
        appends += 1;
        return appends > 1 ? Promise.reject(failure) : Reflect.apply(value, target, args);
      };
    },
  });
  const model = scripted([calling(callOf("a", "look")), "Done."]);
  const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")], persist: failing });
  await expect(run.synchronize()).rejects.toBe(failure);
  const stored = (await entriesOf(store, run.id)).flatMap((entry) =>
    entry.type === "message" ? [inShort(entry.message)] : [],
  );
  expect(shortly(run.transcript)).toEqual(stored);
  expect(stored).toEqual(["user: Do it.", "assistant: [look]"]);
  const { user, agent } = await resumeAfterLease(store, run.id);
  expect((await runSessionLoop(user, agent, { model: scripted(["Fine."]), tools: [toolOf("look")] })).text()).toBe(
    "Fine.",
  );
});

/** Resumes from the store; no other process runs on this value any more. */
async function resumeAfterLease(store: SessionStore, sessionId: string): Promise<{ user: Session; agent: Session }> {
  await expect.poll(async () => (await store.leaseOf(sessionId)) === null).toBe(true);
  return resumeSession({ store, sessionId });
}
