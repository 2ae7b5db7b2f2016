import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { asking, callOf, calling, nextEvent, shortly, someAgent, toolOf } from "../../../test/sample-run.ts";
import { entriesOf } from "../../../test/sample-run-log.ts";
import { scripted } from "../../models/scripted.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { inputIdOf, requestIdOf } from "../../session/log/open-runs.ts";
import { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript, userRow } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { drainRuns } from "../active-runs.ts";
import type { LoopOptions } from "../loop-options.ts";
import { resumeSession } from "./resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { SessionRun } from "../session-run.ts";
import { type Claim, claimRun } from "./claim-run.ts";
import { LeaseHold } from "./lease-hold.ts";
import { StoreAccess } from "./log-access.ts";
import type { Persist } from "./persist-option.ts";
import { SessionTree } from "../../tree/session-tree.ts";

const stores: Readonly<Record<string, () => Promise<SessionStore>>> = {
  memory: async () => openMemoryStore(),
  sqlite: async () => {
    const directory = await mkdtemp(join(tmpdir(), "skein-claim-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    return openSqliteStore({ path: join(directory, "skein.db") });
  },
};

const SESSION = "a";
const TIME = { past: "2020-01-01T00:00:00.000Z", future: "2999-01-01T00:00:00.000Z" };

async function storeWith(open: () => Promise<SessionStore>, ...drafts: EntryDraft[]): Promise<SessionStore> {
  const store = await open();
  onTestFinished(() => store.close());
  await store.create(createHeader({ id: SESSION }));
  // One at a time, as if each claim were a separate append.
  for (const draft of drafts) await store.append(SESSION, [draft]);
  return store;
}

const started = (runId: string): EntryDraft => ({ type: "run", runId, phase: "started" });
const requested = (runId: string, more: { notBefore?: string; by?: string } = {}): EntryDraft => ({
  type: "run_request",
  id: requestIdOf(runId),
  runId,
  input: "Go.",
  ...more,
});
const parked = (runId: string): EntryDraft => ({
  type: "run_parked",
  runId,
  questions: [{ callId: "c", question: "q" }],
});

/** Claims the session for a run as a log does, and keeps it. */
function claim(store: SessionStore, runId: string, version?: number): Promise<Claim & { access: StoreAccess }> {
  const access = new StoreAccess({
    store,
    sessionId: SESSION,
    append: store.append.bind(store, SESSION),
    acquire: () => LeaseHold.take(store, SESSION, runId),
    head: async () => (await store.head(SESSION)) as Awaited<ReturnType<SessionStore["fork"]>>,
  });
  return claimRun(access, { runId, version }, async (claimed) => {
    await store.append(SESSION, [...claimed.ends, claimed.started], { guard: access.guard });
    return { ...claimed, access };
  });
}

function runIn(store: SessionStore, runId: string, more: Partial<LoopOptions> = {}): SessionRun {
  const user = Session.of(Transcript.of([{ ...userRow("Go."), id: inputIdOf(runId) }]));
  const persist = { store, sessionId: SESSION };
  return runSessionLoop(user, someAgent(), { model: scripted(["Done."]), persist, runId, ...more });
}

async function facts(store: SessionStore): Promise<unknown[]> {
  const entries = await entriesOf(store, SESSION);
  return entries.flatMap((entry) => (entry.type === "run" ? [[entry.runId, entry.phase]] : []));
}

describe.each(Object.entries(stores))("in a %s store", (_, open) => {
  test("only one of two concurrent claims of a run succeeds, and its lease is recorded with the start", async () => {
    const store = await storeWith(open, requested("r"));
    const claims = await Promise.allSettled([claim(store, "r"), claim(store, "r")]);
    const [won, ...more] = claims.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const [lost] = claims.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect([more, lost]).toMatchObject([[], { code: "SESSION_BUSY" }]);
    const entries = await entriesOf(store, SESSION);
    expect(entries.filter(({ type }) => type === "run")).toMatchObject([{ claim: won?.access.lease?.token }]);
    await won?.access.release();
  });

  test("runs whose process died are ended, as cancelled if they were asked to stop", async () => {
    const store = await storeWith(open, started("dead"), started("told"), { type: "cancel", runId: "told" });
    await (await claim(store, "r")).access.release();
    expect(await facts(store)).toEqual([
      ["dead", "started"],
      ["told", "started"],
      ["dead", "failed"],
      ["told", "cancelled"],
      ["r", "started"],
    ]);
  });

  test.each([
    { what: "waits for an answer", drafts: [started("first"), parked("first")] },
    {
      what: "has its answer",
      drafts: [
        started("first"),
        { type: "approval", id: "q", runId: "first", callId: "c" },
        parked("first"),
        { type: "approval", id: "answer:q", runId: "first", callId: "c", question: "q", decision: { approved: true } },
      ] as EntryDraft[],
    },
    { what: "was asked for before", drafts: [requested("first"), requested("r")] },
    { what: "was asked for before and is due", drafts: [requested("first", { notBefore: TIME.past })] },
  ])("a run that $what goes first, and is not ended", async ({ drafts }) => {
    const store = await storeWith(open, ...drafts);
    const before = await store.head(SESSION);
    await expect(claim(store, "r")).rejects.toMatchObject({ code: "SESSION_BUSY", holder: /^run first,/ });
    expect([await store.head(SESSION), await store.leaseOf(SESSION)]).toEqual([before, null]);
    const first = await claim(store, "first");
    expect((await store.head(SESSION))?.openRuns).toContainEqual(
      expect.objectContaining({ runId: "first", state: "started" }),
    );
    await first.access.release();
  });

  test("a run that was requested later, or for a later time, does not delay one that is due", async () => {
    const store = await storeWith(
      open,
      requested("later", { notBefore: TIME.future }),
      requested("r"),
      requested("next"),
    );
    await (await claim(store, "r")).access.release();
    expect((await store.head(SESSION))?.openRuns.map(({ runId, state }) => [runId, state])).toEqual([
      ["later", "requested"],
      ["next", "requested"],
      ["r", "started"],
    ]);
  });

  test("a change of a run since the caller read the log is a conflict, other appends are not", async () => {
    const store = await storeWith(open, requested("r"));
    const version = (await store.head(SESSION))?.version as number;
    await store.append(SESSION, [{ type: "session_info", name: "meanwhile" }, requested("other")]);
    await (await claim(store, "r", version)).access.release();
    await expect(claim(store, "r", version)).rejects.toMatchObject({ code: "CONFLICT" });
    expect(await store.leaseOf(SESSION)).toBeNull();
  });

  test("a run that was claimed five times without progress is ended as failed by the sixth claim", async () => {
    const store = await storeWith(open, requested("r"));
    for (let time = 1; time <= 5; time++) await (await claim(store, "r")).access.release();
    await expect(claim(store, "r")).rejects.toMatchObject({ code: "RUN_ENDED", message: /5 times/ });
    expect((await facts(store)).at(-1)).toEqual(["r", "failed"]);
    const end = (await entriesOf(store, SESSION)).at(-1);
    expect(end).toMatchObject({ error: "The run was begun 5 times without any progress." });
    expect([(await store.head(SESSION))?.openRuns, await store.leaseOf(SESSION)]).toEqual([[], null]);
  });

  test("a run that made progress between its claims continues", async () => {
    const store = await storeWith(open, requested("r"));
    for (let time = 1; time <= 7; time++) {
      const { access } = await claim(store, "r");
      const message = { role: "assistant", content: "Still here." } as const;
      await store.append(SESSION, [{ type: "message", message }], { guard: access.guard });
      await access.release();
    }
    expect((await store.head(SESSION))?.openRuns).toMatchObject([{ runId: "r", state: "started" }]);
  });

  test("a run that was cancelled while no process held it is recorded as cancelled by the next claim", async () => {
    const store = await storeWith(open, requested("r"), started("r"), { type: "cancel", runId: "r" });
    await expect(claim(store, "r")).rejects.toMatchObject({ code: "RUN_ENDED", message: /cancelled/ });
    expect((await facts(store)).at(-1)).toEqual(["r", "cancelled"]);
  });

  test("the input of a requested run becomes its message under a derived id, with its author", async () => {
    const store = await storeWith(open, requested("r", { by: "ada" }));
    const run = runIn(store, "r");
    expect([run.runId, run.status]).toEqual(["r", "running"]);
    await run.admitted;
    expect((await store.head(SESSION))?.openRuns).toMatchObject([{ runId: "r", state: "started" }]);
    expect(shortly((await run).transcript)).toEqual(["user: Go.", "assistant: Done."]);
    const rows = (await entriesOf(store, SESSION)).filter(({ type }) => type === "message");
    expect(rows.map(({ id, by }: Entry) => [id === inputIdOf("r"), by])).toEqual([
      [true, "ada"],
      [false, undefined],
    ]);
    expect([run.status, (await store.head(SESSION))?.openRuns]).toEqual(["finished", []]);
  });

  test("input that was queued before the start of a run is delivered after the start", async () => {
    const store = await storeWith(open, requested("r"), requested("next"));
    const say = (runId: string, content: string): EntryDraft => ({ type: "queued", runId, kind: "followUp", content });
    await store.append(SESSION, [say("r", "And then?"), say("next", "Not now.")]);
    const run = runIn(store, "r", { model: scripted(["First.", "Then."]) });
    expect(shortly((await run).transcript)).toEqual([
      "user: Go.",
      "assistant: First.",
      "user: And then?",
      "assistant: Then.",
    ]);
  });

  test("a refused claim fails the run, and nothing waits for it", async () => {
    const store = await storeWith(open, started("first"), parked("first"));
    const run = runIn(store, "r");
    await expect(run.synchronize()).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await expect(run.admitted).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(run.status).toBe("failed");
  });
});

test.each(["store", "new session", "fork", "file"])(
  "the start of a run kept in a %s names its agent, its model and its tools",
  async (place) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-claim-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "run.jsonl");
    const store = openMemoryStore();
    const { id: sessionId } = (await store.create(createHeader())).header;
    const places = { store: { store, sessionId }, "new session": store, fork: { store, fork: true }, file: path };
    const persist = places[place as keyof typeof places] as Persist;
    const options = { persist, tools: [toolOf("look")], builtInTools: false, agentName: "helper" };
    const run = runSessionLoop(asking(), someAgent(), { ...options, model: scripted(["Done."]) });
    await run;
    const tree = place === "file" ? await SessionTree.open(path) : null;
    const entries = tree ? await tree.entries() : await entriesOf(store, place === "store" ? sessionId : run.id);
    await tree?.close();
    const starts = entries.filter((entry) => entry.type === "run" && entry.phase === "started");
    expect(starts).toMatchObject([{ agent: "helper", model: "scripted/scripted", tools: ["look"] }]);
  },
);

test.each(["a store", "a session of it", "a file"])(
  "a run resumed in %s keeps its id, and gets another id elsewhere",
  async (place) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-claim-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "run.jsonl");
    const store = openMemoryStore();
    const wait = toolOf("wait", (_args, { signal }) => new Promise((done) => signal.addEventListener("abort", done)));
    const model = scripted([calling(callOf("1", "wait"))]);
    const persist = place === "a file" ? path : store;
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [wait], persist });
    await nextEvent(run, "tool-started");
    await drainRuns({ timeoutMs: 0, ids: [run.id] });

    const { user, agent } = await resumeSession(place === "a file" ? path : { store, sessionId: run.id });
    const again = place === "a session of it" ? { store, sessionId: run.id } : persist;
    const options = { tools: [wait], model: scripted(["Done.", "Done."]) };
    const elsewhere = runSessionLoop(user, agent, { ...options, persist: { store: openMemoryStore(), fork: true } });
    const on = runSessionLoop(user, agent, { ...options, persist: again });
    expect([on.runId === run.runId, elsewhere.runId === run.runId]).toEqual([true, false]);
    await Promise.all([on, elsewhere]);
    if (place !== "a file") expect((await store.head(run.id))?.openRuns).toEqual([]);
  },
);

test("of several processes that resume a file at the same time, exactly one runs", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-claim-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "run.jsonl");
  const ran: string[] = [];
  const pay = toolOf("pay", () => ran.push("paid"), { needsApproval: () => true });
  const model = scripted([calling(callOf("1", "pay"))]);
  const run = runSessionLoop(asking(), someAgent(), { model, tools: [pay], persist: path });
  await nextEvent(run, "approval-required");
  await run.approve("1");
  await run.synchronize().catch(() => {});
  ran.length = 0;
  for (let round = 0; round < 5; round++) {
    const found = await Promise.all([0, 1, 2].map(() => resumeSession(path)));
    const runs = found.map(({ user, agent }) =>
      runSessionLoop(user, agent, { model: scripted(["Done."]), tools: [pay], persist: path }),
    );
    const ends = await Promise.allSettled(runs.map((one) => one.synchronize()));
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  }
  expect(ran).toEqual([]);
});

describe.for(Object.entries(stores))("on %s, a run that was requested and cancelled", ([, open]) => {
  test("does not start again under its id, and a fork may use that id", async () => {
    const store = await storeWith(open, requested("x"), { type: "cancel", runId: "x" });
    const run = (sessionId: string) =>
      runSessionLoop(someAgent(), asking(), { model: scripted(["Hi."]), runId: "x", persist: { store, sessionId } });
    await expect(run(SESSION)).rejects.toMatchObject({ code: "CONFLICT" });
    expect((await store.head(SESSION))?.openRuns).toEqual([]);
    expect((await entriesOf(store, SESSION)).map(({ type }) => type)).toEqual(["run_request", "cancel"]);
    await store.fork(SESSION, createHeader({ id: "fork" }));
    expect((await run("fork")).transcript.toMessages().at(-1)).toMatchObject({ content: "Hi." });
  });
});
