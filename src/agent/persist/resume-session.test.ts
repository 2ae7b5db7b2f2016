import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assistant, calls, message, result, usage, user as said } from "../../../test/sample-log.ts";
import { idsOf, openLog, sessionOf } from "../../../test/sample-run-log.ts";
import { backends } from "../../../test/store-backends.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { Sandbox, SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { registerSandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript, userRow } from "../../session/value/transcript.ts";
import { openJsonlStore } from "../../stores/jsonl/index.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { openSessionWriter } from "../../tree/index.ts";
import { SessionTree } from "../../index.ts";
import { resumeSession } from "./resume-session.ts";
import { type ResumeState, resumeStateOf } from "./resume-state.ts";
import { QUEUED_KEY } from "../../session/log/run-fold.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-resume-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The state of a session that holds these entries. */
async function stateOf(...drafts: readonly EntryDraft[]): Promise<ResumeState> {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "a" }));
  for (const draft of drafts) await store.append("a", [draft], { guard: { holds: true } });
  const { user } = await resumeSession({ store, sessionId: "a" });
  return resumeStateOf(user.transcript) as ResumeState;
}

const runId = "r1";
const started: EntryDraft = { type: "run", runId, phase: "started" };
const effect = (callId: string): EntryDraft => ({ type: "effect", runId, callId });
const approval = (callId: string, decision?: EntryDraft & object): EntryDraft =>
  ({ type: "approval", runId, callId, ...(decision === undefined ? {} : { decision }) }) as EntryDraft;
const queued = (id: string, kind: "steer" | "followUp" = "steer"): EntryDraft => ({
  type: "queued",
  id,
  runId,
  kind,
  content: `input ${id}`,
});
const delivered = (id: string): EntryDraft => ({
  type: "message",
  message: { role: "user", content: `input ${id}`, metadata: { [QUEUED_KEY]: id } },
});

describe.each(backends)("from a $name store", ({ open }) => {
  let store: SessionStore;
  beforeEach(async () => {
    store = await open(directory);
  });
  afterEach(() => store.close());

  test("returns the session with its id, usage and instructions, and the next run continues in it", async () => {
    const { log, request } = await openLog(store, sessionOf(userRow("one")), { systemPrompt: "be kind" });
    const { id, lineage } = request.output;
    await log.append([message("call", { ...calls("c1"), usage: usage(4, 2), cost: 0.5 } as never)]);
    await expect(resumeSession({ store, sessionId: id })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await log.abandon();

    const { user, agent } = await resumeSession({ store, sessionId: id });
    expect(user).toMatchObject({ id, lineage, usage: usage(4, 2), cost: 0.5 });
    expect(idsOf(user)).toEqual([...idsOf(request.user), "call"]);
    expect(agent.transcript.toMessages()).toEqual([{ role: "system", content: "be kind" }]);
    expect(Transcript.originOf(user.transcript)).toMatchObject({ store, sessionId: id, length: 2 });

    const next = await openLog({ store, sessionId: id }, user, { systemPrompt: "be kind" });
    expect(next.user).toBe(user);
    await next.log.append([message("result", result("c1")), message("done", assistant("done"))]);
    await next.log.end({ phase: "finished" });
    const again = await resumeSession({ store, sessionId: id }, { agentPrompt: "be quick" });
    expect(idsOf(again.user)).toEqual([...idsOf(user), "result", "done"]);
    expect(again.agent.transcript.toMessages()).toEqual([{ role: "system", content: "be quick" }]);
    // Of the two runs, the first never ended by itself.
    expect((await store.head(id))?.openRuns).toEqual([]);
  });

  test("lets one of two processes continue the same interrupted run, and the other must resume again", async () => {
    const { log, request } = await openLog(store, sessionOf(userRow("one")));
    const { id: sessionId } = request.output;
    await log.append([message("call", calls("c1"))]);
    await log.abandon();
    const [first, second] = [await resumeSession({ store, sessionId }), await resumeSession({ store, sessionId })];
    // A fact appended to the session in the meantime does not prevent the run from continuing.
    await store.append(sessionId, [{ type: "label", targetId: "call", label: "here" }]);
    const going = await openLog({ store, sessionId }, first.user);
    await going.log.append([message("result", result("c1"))]);
    await going.log.end({ phase: "finished" });
    const head = await store.head(sessionId);
    await expect(openLog({ store, sessionId }, second.user)).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("read it again"),
    });
    expect([await store.head(sessionId), await store.leaseOf(sessionId)]).toEqual([head, null]);
    const third = await resumeSession({ store, sessionId });
    await (await openLog({ store, sessionId }, third.user)).log.end({ phase: "finished" });
  });

  test("names a missing session in the error", async () => {
    await expect(resumeSession({ store, sessionId: "nobody" })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });
});

describe("from a file", () => {
  test("continues in the same file after a run that failed in the middle", async () => {
    const path = join(directory, "run.jsonl");
    const first = await openLog(path, sessionOf(userRow("one")));
    await expect(resumeSession(path)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await first.log.append([
      message("call", calls("c1")),
      { type: "effect", runId: first.request.runId, callId: "c1" },
    ]);
    await first.log.end({ phase: "failed", error: "the network is gone" });
    const before = await readFile(`${path}.__partial__`);

    const { user, agent } = await resumeSession(path);
    expect(user.id).toBe(first.request.output.id);
    expect(agent.transcript.toMessages()).toEqual([{ role: "system", content: "be brief" }]);
    expect(resumeStateOf(user.transcript)?.effects).toEqual(new Set([0]));
    expect(Transcript.originOf(user.transcript)).toBeNull();
    const second = await openLog(path, user);
    await second.log.append([message("result", result("c1")), message("done", assistant("done"))]);
    await second.log.end({ phase: "finished" });
    expect((await readFile(path)).subarray(0, before.length)).toEqual(before);
    expect(idsOf((await resumeSession(path)).user)).toEqual([...idsOf(user), "result", "done"]);
  });

  test("is found by its id, and is busy while a writer or a run of a store has it", async () => {
    const session = sessionOf(userRow("one"));
    const writer = await openSessionWriter(session, { directory });
    await writer.writeRow(userRow("one"));
    await expect(resumeSession(session.id, { directory })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await writer.close();
    await using store = await openJsonlStore({ directory });
    {
      await using _lease = await store.lease(session.id, "r9", 60_000);
      await expect(resumeSession(session.id, { directory })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    }
    // A tree shares its file, so it does not prevent a resume.
    await using tree = await SessionTree.open(writer.path);
    await tree.setName("open");
    const { user, agent } = await resumeSession(session.id, { directory });
    expect([user.id, user.transcript.length]).toEqual([session.id, 1]);
    expect(agent.transcript.toMessages()).toEqual([]);
  });

  test("a session without rows has no effect on other sessions without rows", async () => {
    const session = sessionOf();
    await using writer = await openSessionWriter(session, { directory });
    await writer.close();
    expect((await resumeSession(session.id, { directory })).user.transcript.length).toBe(0);
    expect(resumeStateOf(Transcript.empty)).toBeNull();
  });
});

test("attaches to the sandbox that was recorded", async () => {
  const attached: [string, SandboxSpec][] = [];
  registerSandboxBackend("resume-test", () => ({
    open: () => Promise.reject(new Error("a new one was opened")),
    attach: async (id, spec) => {
      attached.push([id, spec]);
      return { id, spec, backend: "resume-test", closed: false, close: async () => {} } as Sandbox;
    },
  }));
  const path = join(directory, "run.jsonl");
  const user = sessionOf(userRow("one")).to("resume-test", "/w");
  const { log } = await openLog(path, user, { sandboxHandleId: "h-7" });
  await log.abandon();
  await using resumed = (await resumeSession(path)).user;
  expect((await resumed.requireSandbox()).id).toBe("h-7");
  expect(attached).toEqual([["h-7", { workingDir: "/w" }]]);
});

describe("the resume state", () => {
  test("has the calls without a result, which of them may have had their effect, and their approvals", async () => {
    const state = await stateOf(
      message("u", said("go")),
      started,
      message("a", calls("c1", "c2", "c3", "c4", "c5")),
      effect("c1"),
      effect("c2"),
      message("t", result("c2")),
      approval("c3"),
      approval("c4"),
      approval("c4", { approved: true } as never),
      approval("c5", { approved: false, reason: "too much" } as never),
    );
    expect(state.effects).toEqual(new Set([0]));
    expect([...state.approvals].sort()).toEqual([
      [2, { question: expect.any(String), decision: null }],
      [3, { question: expect.any(String), decision: { approved: true } }],
      [4, { question: null, decision: { approved: false, reason: "too much" } }],
    ]);
  });

  test("keeps a decision although the question was repeated, and accepts only an explicit approval", async () => {
    const yes = await stateOf(
      started,
      message("a", calls("c1")),
      approval("c1", { approved: true } as never),
      approval("c1"),
    );
    expect(yes.approvals.get(0)).toMatchObject({ decision: { approved: true } });
    const unclear = await stateOf(started, message("a", calls("c1")), approval("c1", "yes" as never));
    expect(unclear.approvals.get(0)).toMatchObject({ decision: { approved: false, reason: null } });
  });

  test("distinguishes the effect of an earlier call from that of a later one with the same id", async () => {
    const state = await stateOf(
      started,
      message("a1", calls("c1")),
      effect("c1"),
      message("t1", result("c1")),
      message("a2", calls("c1")),
    );
    expect(state.effects).toEqual(new Set());
  });

  test.each([
    ["takes what was done about a call on another branch for done", said("other branch"), [0]],
    ["does not take a call of a later answer on another branch for one of the same id on this", calls("c1"), []],
  ])("%s", async (_behaviour, there, effects) => {
    const store = openMemoryStore();
    await store.create(createHeader({ id: "a" }));
    const tree = await SessionTree.on(store, "a");
    const guard = { holds: true } as const;
    await tree.append(started);
    await tree.append(message("root", calls("c1")), { guard });
    await tree.append(message("left", there), { guard });
    await tree.append(effect("c1"));
    await tree.append({ type: "run", runId, phase: "finished" });
    await tree.branch("root");
    const resumed = await resumeSession({ store, sessionId: "a" });
    expect(resumeStateOf(resumed.user.transcript)?.effects).toEqual(new Set(effects));
  });

  test("finds an effect that is older than the end of another run", async () => {
    const state = await stateOf(
      started,
      message("a", calls("c1")),
      effect("c1"),
      queued("waits"),
      { type: "run", runId: "r0", phase: "finished" },
      { type: "session_info", name: "later" },
    );
    expect(state.effects).toEqual(new Set([0]));
    expect(state.queued).toMatchObject([{ id: "waits" }]);
  });

  test("has the undelivered input, in order, of all runs since the last one that finished or was cancelled", async () => {
    const state = await stateOf(
      queued("forgotten"),
      { type: "run", runId: "r0", phase: "finished" },
      message("u", said("go")),
      started,
      queued("q1", "followUp"),
      queued("q2"),
      delivered("q2"),
      message("a", assistant("hm")),
      { type: "run", runId, phase: "failed" },
      { type: "run", runId: "r2", phase: "started" },
      queued("q3"),
    );
    expect(state.queued).toEqual([
      { id: "q1", kind: "followUp", content: "input q1" },
      { id: "q3", kind: "steer", content: "input q3" },
    ]);
    expect(state.effects.size + state.approvals.size).toBe(0);
  });

  test("has the input from before a compaction that an open run has not delivered", async () => {
    const state = await stateOf(
      message("u", said("go")),
      started,
      queued("q1", "followUp"),
      message("a", assistant("much")),
      { type: "compaction", summary: "s", firstKeptEntryId: "a", tokensBefore: 9 },
      message("b", assistant("more")),
    );
    expect(state.queued.map(({ id }) => id)).toEqual(["q1"]);
  });

  test("contains no entry that was appended after the head was read", async () => {
    const inner = openMemoryStore();
    await inner.create(createHeader({ id: "a" }));
    for (const draft of [message("u", said("go")), started]) await inner.append("a", [draft]);
    const { version } = (await inner.head("a")) ?? { version: 0 };
    let given = 0;
    // Before every read of entries.
    const read: SessionStore["read"] = async function* (id, options) {
      await inner.append("a", [queued(`q${given++}`)]);
      yield* inner.read(id, options);
    };
    const store = new Proxy(inner, {
      get(target, key) {
        if (key === "read") return read;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const { user } = await resumeSession({ store, sessionId: "a" });
    // The resumed run folds the entries after this version.
    expect(resumeStateOf(user.transcript)).toMatchObject({ version, queued: [] });
    expect(given).toBeGreaterThan(0);
  });

  test("reads the context and the last run, not the history", async () => {
    const inner = openMemoryStore();
    const history = Array.from({ length: 5000 }, (_, i) => message(`m${i}`, said(`${i}`)));
    await inner.create(createHeader({ id: "a" }), { entries: history });
    await inner.append("a", [
      { type: "compaction", summary: "s", firstKeptEntryId: "m4999", tokensBefore: 9 },
      message("last", calls("c1")),
    ]);
    let count = 0;
    const store = new Proxy(inner, {
      get(target, key) {
        const value = Reflect.get(target, key) as unknown;
        if (key !== "read") return typeof value === "function" ? value.bind(target) : value;
        return async function* (...args: Parameters<SessionStore["read"]>) {
          for await (const entry of target.read(...args)) {
            count += 1;
            yield entry;
          }
        };
      },
    });
    const { user } = await resumeSession({ store, sessionId: "a" });
    expect(user.transcript.length).toBe(3);
    expect(count).toBeLessThan(100);
  });
});
