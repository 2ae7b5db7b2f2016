import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  nextEvent,
  resultsOf,
  someAgent,
  streamOf,
  toolOf,
} from "../../../test/sample-run.ts";
import { backends } from "../../../test/store-backends.ts";
import { GroupSession } from "../../group/group-session.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted } from "../../models/scripted.ts";
import { StoreUnreachableError } from "../../session/errors.ts";
import { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { userRow } from "../../session/value/transcript.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { drainRuns } from "../active-runs.ts";
import { createAgent } from "../agent.ts";
import type { LoopOptions } from "../loop-options.ts";
import { type ResumedSession, resumeSession } from "./resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { SessionRun } from "../session-run.ts";
import type { Tool } from "../tools/tool.ts";

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-claim-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Why a call can be open without a recorded effect: it waits for others, for one with its key, or for approval. */
const WAITING: Readonly<Record<string, Partial<Tool>>> = {
  "is exclusive": { exclusive: true },
  "has the key of another": { resourceKey: () => "same" },
  "waits for approval": { needsApproval: () => true },
};

interface Interrupted {
  readonly sessionId: string;
  readonly ran: string[];
  /** Opens the calls that the tools wait in. */
  readonly letGo: () => void;
  /** Resumes the session; returns a function that starts a run with it. */
  resume(): Promise<(persist: LoopOptions["persist"]) => SessionRun>;
}

/** A run that was stopped before its second call had begun. */
async function interrupt(store: SessionStore, extras: Partial<Tool>): Promise<Interrupted> {
  const ran: string[] = [];
  const { pass, open: letGo } = gate();
  const held = gate();
  const { needsApproval: _, ...ofFirst } = extras;
  const first = toolOf("first", () => held.pass, ofFirst);
  const pay = async (): Promise<string> => {
    ran.push("second");
    await pass;
    return "once";
  };
  const second = toolOf("second", pay, extras);
  const tools = [first, second];
  const calls = calling(callOf("c1", "first"), callOf("c2", "second"));
  const run = runSessionLoop(asking(), someAgent(), { model: scripted([calls]), tools, persist: store });
  await nextEvent(run, "tool-started");
  await drainRuns({ timeoutMs: 0 });
  held.open();
  expect(ran).toEqual([]);
  const start =
    ({ user, agent }: ResumedSession) =>
    (persist: LoopOptions["persist"]): SessionRun => {
      const options = { model: scripted(["Done."]), tools, ...(persist === undefined ? {} : { persist }) };
      const going = runSessionLoop(user, agent, options);
      void approveAll(going);
      return going;
    };
  return {
    sessionId: run.id,
    ran,
    letGo,
    resume: async () => start(await resumeSession({ store, sessionId: run.id })),
  };
}

async function approveAll(run: SessionRun): Promise<void> {
  for await (const event of run)
    if (event.type === "approval-required") await run.approve(event.approval.callId).catch(() => {});
}

describe.each(backends)("in a $name store", ({ open }) => {
  async function openStore(): Promise<SessionStore> {
    const store = await open(await makeDirectory());
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  }

  test.each(Object.entries(WAITING))(
    "of three that resume a run whose open call %s, one runs it, in the session itself",
    async (_, extras) => {
      const store = await openStore();
      const { sessionId, ran, letGo, resume } = await interrupt(store, extras);
      const [one, two, three] = [await resume(), await resume(), await resume()];
      const going = one(store);
      await expect.poll(() => ran.length).toBe(1);
      await expect(two(store).synchronize()).rejects.toMatchObject({ code: "SESSION_BUSY" });
      letGo();
      const { transcript } = await going;
      await expect(three(store).synchronize()).rejects.toMatchObject({ code: "CONFLICT" });
      expect([ran, resultsOf(transcript)[1]]).toEqual([["second"], "once"]);
      expect([await store.count(), (await store.head(sessionId))?.openRuns]).toEqual([1, []]);
    },
  );

  test("of five concurrent resumes, one runs the open call", async () => {
    const store = await openStore();
    const { sessionId, ran, letGo, resume } = await interrupt(store, { exclusive: true });
    letGo();
    const starts = await Promise.all(Array.from({ length: 5 }, () => resume()));
    const ends = await Promise.allSettled(starts.map((start) => start(store).synchronize()));
    const codes = ends.map((end) => (end.status === "fulfilled" ? "ran" : (end.reason as { code: string }).code));
    expect(codes.filter((code) => code === "ran")).toHaveLength(1);
    expect(codes.filter((code) => !["ran", "SESSION_BUSY", "CONFLICT"].includes(code))).toEqual([]);
    expect([ran, await store.count(), (await store.head(sessionId))?.openRuns]).toEqual([["second"], 1, []]);
  });

  test("an explicit fork answers the open calls as interrupted, and does not change the original run", async () => {
    const store = await openStore();
    const { sessionId, ran, resume } = await interrupt(store, { exclusive: true });
    const [before, start] = [await store.head(sessionId), await resume()];
    const fork = await start({ store, fork: true });
    expect(resultsOf(fork.transcript)).toMatchObject([{ error_kind: "interrupted" }, { error_kind: "interrupted" }]);
    expect([ran, await store.head(sessionId), await store.count()]).toEqual([[], before, 2]);
    expect((await store.head(fork.id))?.header.forkedFrom).toMatchObject({ sessionId });
    expect(before?.openRuns).toHaveLength(1);
  });

  test("a new message after a resume continues in the same session, and the open calls do not run", async () => {
    const store = await openStore();
    const { sessionId, ran, resume } = await interrupt(store, { exclusive: true });
    const start = await resume();
    const { user, agent } = await resumeSession({ store, sessionId });
    const more = Session.of(user.transcript.append(userRow("Never mind.")), { id: user.id });
    await runSessionLoop(more, agent, { model: scripted(["All right."]), persist: store });
    expect([ran, await store.count(), (await store.head(sessionId))?.openRuns]).toEqual([[], 1, []]);
    await expect(start(store).synchronize()).rejects.toMatchObject({ code: "CONFLICT" });
    const late = runSessionLoop(more, agent, { model: scripted(["Again."]), persist: store });
    await expect(late.synchronize()).rejects.toMatchObject({ code: "CONFLICT" });
  });

  test("a process that resumed before the last holder recorded a result does not record another result for that call", async () => {
    const store = await openStore();
    const { sessionId, ran, resume } = await interrupt(store, { exclusive: true });
    const start = await resume();
    const lease = await store.lease(sessionId, "the last holder", 60_000);
    const message = { role: "tool", toolCallId: "c1", name: "first", content: "late" } as const;
    await store.append(sessionId, [{ type: "message", message }], { guard: { leaseToken: lease.token } });
    await lease.release();
    await expect(start(store).synchronize()).rejects.toMatchObject({ code: "CONFLICT" });
    expect(ran).toEqual([]);
  });
});

test("an open call does not run if no lease protects it: not stored, in a file, in another session", async () => {
  const store = openMemoryStore();
  const { ran, resume } = await interrupt(store, { exclusive: true });
  const other = await runSessionLoop(asking("Else."), someAgent(), { model: scripted(["Yes."]), persist: store });
  const path = join(await makeDirectory(), "run.jsonl");
  for (const persist of [undefined, path, openMemoryStore(), { store, sessionId: other.id }]) {
    const { transcript } = await (await resume())(persist);
    expect(resultsOf(transcript)).toMatchObject([{ error_kind: "interrupted" }, { error_kind: "interrupted" }]);
  }
  expect(ran).toEqual([]);
});

test("a run reports once that someone moved the leaf, and stays on its branch", async () => {
  const store = openMemoryStore();
  const move = toolOf("move", async (_args, { session, callId }) => {
    const targetId = callId === "back" ? (session.transcript.at(-1)?.id as string) : null;
    await store.append(session.id, [{ type: "leaf", targetId }]);
    return callId;
  });
  const moves = ["away", "back", "away again"];
  const model = scripted([...moves.map((id) => calling(callOf(id, "move"))), "Done."]);
  const run = runSessionLoop(asking(), someAgent(), { model, tools: [move], persist: store });
  const session = await run;
  const events = await eventsOf(run);
  expect(events.filter(({ type }) => type === "leaf-moved")).toEqual([
    { type: "leaf-moved", leafId: null, runId: events[0]?.runId },
  ]);
  expect((await store.head(session.id))?.leafId).toBeNull();
  expect(resultsOf(session.transcript)).toEqual(moves);
  // A run that begins at an earlier entry was never at the leaf.
  const first = Session.of(session.transcript);
  const beside = runSessionLoop(first, someAgent(), {
    model: scripted(["Beside."]),
    persist: { store, sessionId: session.id },
  });
  await beside;
  expect((await eventsOf(beside)).filter(({ type }) => type === "leaf-moved")).toEqual([]);
});

describe("the lease of a run", () => {
  test.each([0, 999, 1000.5, -1, "1000", 3_600_001])("is not taken for %j ms", (leaseMs) => {
    const options = { model: scripted([]), leaseMs } as LoopOptions;
    expect(() => runSessionLoop(asking(), someAgent(), options)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining("leaseMs") }),
    );
  });

  test("has the requested duration, and every tool receives its token", async () => {
    const now = new Date("2026-01-01T00:00:00.000Z");
    const store = openMemoryStore({ clock: () => now });
    const seen: unknown[] = [];
    const look = toolOf("look", async (_args, { session, leaseToken }) => {
      const lease = await store.leaseOf(session.id);
      seen.push(leaseToken === null ? null : [leaseToken === lease?.token, lease?.expiresAt]);
    });
    const options = { tools: [look], leaseMs: 5_000 };
    for (const persist of [store, false] as const) {
      const model = scripted([calling(callOf("1", "look")), "Done."]);
      await runSessionLoop(asking(), someAgent(), { ...options, model, persist });
    }
    expect(seen).toEqual([[true, "2026-01-01T00:00:05.000Z"], null]);
  });

  test("ends the run when it is lost, at every point of the run", async () => {
    const store = openMemoryStore();
    const stopped: unknown[] = [];
    const wait = toolOf("wait", async (_args, { session, signal }) => {
      await store.delete(session.id);
      await store.undelete(session.id);
      await store.lease(session.id, "another", 60_000);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      stopped.push((signal.reason as { code: string }).code);
    });
    const model = scripted([calling(callOf("1", "wait")), "Done."]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [wait], persist: store, leaseMs: 1_000 });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(stopped).toEqual(["LEASE_LOST"]);
    expect(await store.head(run.id)).toMatchObject({ openRuns: [{ state: "started" }], messageCount: 2 });
  });

  test.each(["an agent", "an agent of a group"])(
    "that a refused append shows to be lost stops the other calls of %s immediately, not at the next renewal",
    async (whose) => {
      const store = openMemoryStore();
      const stopped: unknown[] = [];
      const lose = toolOf("lose", async (_args, { session }) => {
        const id = whose === "an agent" ? session.id : "s";
        await store.delete(id);
        await store.undelete(id);
        await store.lease(id, "another", 60_000);
      });
      const wait = toolOf("wait", async (_args, { signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        stopped.push((signal.reason as { code: string }).code);
      });
      // The lease is renewed after 20 minutes.
      const leaseMs = 3_600_000;
      const model = scripted([calling(callOf("1", "lose"), callOf("2", "wait")), "Done."]);
      const loop = { model, tools: [lose, wait], builtInTools: false } as const;
      if (whose === "an agent") {
        const run = runSessionLoop(asking(), someAgent(), { ...loop, persist: store, leaseMs });
        await expect(run.synchronize()).rejects.toMatchObject({ code: "LEASE_LOST" });
      } else {
        const manager = new SessionManager({ store });
        await manager.create({ userId: "ann", id: "s" });
        const group = new GroupSession({ manager }).addAgent(createAgent({ name: "ada", prompt: "", ...loop }));
        await expect(group.stream("s", "Go.", { leaseMs })).rejects.toMatchObject({ code: "LEASE_LOST" });
      }
      expect(stopped).toHaveLength(1);
    },
  );

  test("that is lost during an answer leaves no part of the answer to the process that continues", async () => {
    // The store's clock does not advance, so it still accepts entries of a holder that has released the run.
    const began = new Date();
    const store = openMemoryStore({ clock: () => began });
    const lease = store.lease.bind(store);
    store.lease = async (...args) => {
      const renew = (): Promise<never> =>
        Promise.reject(new StoreUnreachableError("The store is away.", { cause: null }));
      return { ...(await lease(...args)), renew, release: async () => {} };
    };
    const model = streamOf(async function* (signal) {
      yield { type: "text-delta", text: "Half an answer" };
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    });
    const run = runSessionLoop(asking(), someAgent(), { model, persist: store, leaseMs: 1_000 });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await store.head(run.id)).toMatchObject({ openRuns: [{ state: "started" }], messageCount: 1 });
  });

  test.each([
    { clock: "goes on", runs: ["1"], code: "LEASE_LOST" },
    { clock: "stands still", runs: ["1", "2"], code: undefined },
  ])(
    "that ran out in a process which froze is renewed before the next call or stops it, when the store's clock $clock",
    async ({ clock, runs, code }) => {
      const began = new Date();
      const store = openMemoryStore(clock === "goes on" ? {} : { clock: () => began });
      const ran: string[] = [];
      const freeze = toolOf(
        "freeze",
        (_args, { callId }) => {
          ran.push(callId);
          if (callId === "1") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100);
        },
        { idempotent: true, resourceKey: () => "same" },
      );
      const model = scripted([calling(callOf("1", "freeze"), callOf("2", "freeze")), "Done."]);
      const run = runSessionLoop(asking(), someAgent(), { model, tools: [freeze], persist: store, leaseMs: 1_000 });
      const ended = await run.synchronize().then(
        () => undefined,
        (error: { code: string }) => error.code,
      );
      expect([ran, ended]).toEqual([runs, code]);
    },
  );
});
