import { describe, expect, test, vi } from "vitest";
import { asking, callOf, calling, nextEvent, resultsOf, someAgent, toolOf } from "../../test/sample-run.ts";
import { entriesOf } from "../../test/sample-run-log.ts";
import { CountedBackend } from "../../test/counted-sandbox.ts";
import { scripted } from "../models/scripted.ts";
import type { SandboxBackend } from "../session/sandbox/sandbox.ts";
import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { createAgent } from "./agent.ts";
import type { LoopOptions, OnApproval } from "./loop-options.ts";
import type { Approval } from "../session/log/run-event.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";

const NOBODY = { error_kind: "denied", message: /no one can be asked/ };

/** A run that asks before it pays, once for each call. */
function paying(
  options: Partial<LoopOptions> = {},
  source = asking(),
  calls = ["1"],
): { run: SessionRun; paid: string[] } {
  const paid: string[] = [];
  const pay = toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, { needsApproval: () => true });
  const model = scripted([calling(...calls.map((id) => callOf(id, "pay", { amount: 5 }))), "Done."]);
  const tools = [...(options.tools ?? []), pay];
  return { run: runSessionLoop(source, someAgent(), { model, ...options, tools }), paid };
}

/** A run with a tool that runs another agent, which asks before it pays. */
function outer(options: Partial<LoopOptions> = {}, inner: Partial<LoopOptions> = {}): SessionRun {
  const ask = toolOf("ask", async () => (await paying(inner).run).text());
  const model = scripted([calling(callOf("a", "ask")), "Outer done."]);
  return runSessionLoop(asking(), someAgent(), { model, tools: [ask], ...options });
}

function withResolvers<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe("a run with a question while no one has subscribed to its events", () => {
  test("parks immediately if it is stored, and its status is parked", async () => {
    const store = openMemoryStore();
    const { run, paid } = paying({ persist: store });
    const answer = await run;
    expect([answer.status, run.status, paid]).toEqual(["parked", "parked", []]);
    expect(answer.questions.map(({ callId, name, arguments: given }) => [callId, name, given])).toEqual([
      ["1", "pay", { amount: 5 }],
    ]);
    const questions = answer.questions.map(({ question }) => question);
    expect((await store.head(run.id))?.openRuns).toMatchObject([{ state: "parked", questions }]);
  });

  test("rejects if it is not stored, with an error that says what to do", async () => {
    const { run, paid } = paying();
    await expect(run.synchronize()).rejects.toMatchObject({
      code: "APPROVAL_NEEDED",
      message: /needs approval of the call "1" of "pay".*onApproval.*persist.*manager\.approve/,
    });
    expect([run.status, paid]).toEqual(["failed", []]);
  });

  test("rejects after its time limit if it is not stored", async () => {
    const { run } = paying({ park: { afterMs: 1 } });
    await nextEvent(run, "approval-required");
    await expect(run.synchronize()).rejects.toMatchObject({ code: "APPROVAL_NEEDED" });
  });

  test("denies the call if its sandbox could not be reattached", async () => {
    const backend = new CountedBackend();
    const lost: SandboxBackend = { open: (spec) => backend.open(spec) };
    registerSandboxBackend(backend.name, () => lost);
    const act = toolOf("look", async (_args, context) => void (await context.requireSandbox()));
    const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
    const model = scripted([calling(callOf("0", "look"), callOf("1", "pay")), "Done."]);
    const store = openMemoryStore();
    const source = asking().to(backend.name);
    const run = runSessionLoop(source, someAgent(), { model, tools: [act, pay], persist: store });
    const answer = await run;
    expect(resultsOf(answer.transcript)).toMatchObject([{ ok: true }, NOBODY]);
    expect(answer.status).toBe("finished");
    await answer.closeSandbox();
  });

  test("denies the call of a run inside a tool, and continues", async () => {
    const store = openMemoryStore();
    const run = outer({ persist: store });
    const answer = await run;
    expect([answer.status, resultsOf(answer.transcript)]).toEqual(["finished", ["Done."]]);
    const words = (await entriesOf(store, run.id)).filter((entry) => entry.type === "approval");
    expect(words).toMatchObject([{ asked: { name: "pay" } }, { decision: { approved: false } }]);
  });
});

describe("a run with a question while someone has subscribed to its events", () => {
  test.each(["listen", "onEvent", "iterate"])("waits 30 seconds and parks then (%s)", async (how) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const store = openMemoryStore();
      const asked = withResolvers<void>();
      const heard = ({ type }: { readonly type: string }): void =>
        void (type === "approval-required" && asked.resolve());
      const { run } = paying({ persist: store, ...(how === "onEvent" ? { onEvent: heard } : {}) });
      if (how === "listen") run.listen(heard);
      if (how === "iterate") void nextEvent(run, "approval-required").then(() => asked.resolve());
      await asked.promise;
      await vi.advanceTimersByTimeAsync(29_999);
      expect(run.status).toBe("running");
      await vi.advanceTimersByTimeAsync(1);
      expect((await run).status).toBe("parked");
    } finally {
      vi.useRealTimers();
    }
  });

  test("rejects after the default time if it is not stored", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { run } = paying();
      const failing = run.synchronize();
      failing.catch(() => {});
      await nextEvent(run, "approval-required");
      await vi.advanceTimersByTimeAsync(29_999);
      expect(run.status).toBe("running");
      await vi.advanceTimersByTimeAsync(1);
      await expect(failing).rejects.toMatchObject({ code: "APPROVAL_NEEDED" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("lets a run inside a tool wait as long, and then denies its call", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const run = outer();
      await nextEvent(run, "approval-required");
      await vi.advanceTimersByTimeAsync(29_999);
      expect(run.pendingApprovals).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(1);
      expect((await run).text()).toBe("Outer done.");
      expect(run.pendingApprovals).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a run with park: false", () => {
  test("waits without a time limit", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { run, paid } = paying({ persist: openMemoryStore(), park: false });
      await nextEvent(run, "approval-required");
      await vi.advanceTimersByTimeAsync(7 * 24 * 3_600_000);
      expect(run.status).toBe("running");
      await run.approve("1");
      expect([(await run).status, paid]).toEqual(["finished", ["1"]]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("waits for the answer to a run inside a tool as well", async () => {
    const run = outer({ park: false });
    const { approval } = await nextEvent(run, "approval-required");
    await run.approve(approval.question);
    expect(resultsOf((await run).transcript)).toEqual(["Done."]);
  });
});

describe("onApproval", () => {
  test.each([
    [true, ["paid 1"]],
    [Promise.resolve(true), ["paid 1"]],
    [{ approved: true }, ["paid 1"]],
    [false, [{ error_kind: "denied", message: "The user did not allow this call." }]],
    [{ approved: false, reason: "Too much." }, [{ error_kind: "denied", message: "Too much." }]],
  ])("that says %j decides the call, in a run that is not kept too", async (word, results) => {
    const asked: Approval[] = [];
    const onApproval: OnApproval = (question) => {
      asked.push(question);
      return word;
    };
    const { run } = paying({ onApproval });
    const answer = await run;
    expect(resultsOf(answer.transcript)).toMatchObject(results);
    expect([answer.status, answer.questions]).toEqual(["finished", []]);
    expect(asked).toMatchObject([{ callId: "1", name: "pay", arguments: { amount: 5 } }]);
  });

  test("is an option of an agent, and its answers are recorded", async () => {
    const store = openMemoryStore();
    const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
    const model = scripted([calling(callOf("1", "pay")), "Done."]);
    const agent = createAgent({ prompt: "", model, tools: [pay], onApproval: () => true });
    const run = agent.run("Pay.", { persist: store });
    expect(resultsOf((await run).transcript)).toEqual(["paid"]);
    const words = (await entriesOf(store, run.id)).filter((entry) => entry.type === "approval");
    expect(words).toMatchObject([{ callId: "1" }, { decision: { approved: true } }]);
  });

  test("gets one question at a time, in the order of the calls", async () => {
    const order: string[] = [];
    const onApproval: OnApproval = async ({ callId }) => {
      order.push(`asked ${callId}`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`answered ${callId}`);
      return true;
    };
    const { run, paid } = paying({ onApproval }, asking(), ["1", "2"]);
    await run;
    expect([order, paid]).toEqual([
      ["asked 1", "answered 1", "asked 2", "answered 2"],
      ["1", "2"],
    ]);
  });

  test("gets the questions of several runs inside tools, one at a time", async () => {
    let [now, most] = [0, 0];
    const onApproval: OnApproval = async ({ innerRunId }) => {
      expect(innerRunId).toEqual(expect.any(String));
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      return true;
    };
    const ask = toolOf("ask", async () => (await paying().run).text());
    const model = scripted([calling(callOf("a", "ask"), callOf("b", "ask")), "Outer done."]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [ask], onApproval });
    expect(resultsOf((await run).transcript)).toEqual(["Done.", "Done."]);
    expect(most).toBe(1);
  });

  test("of the outermost run answers; that of a run inside a tool only if the outer one is absent", async () => {
    const asked: string[] = [];
    const noting =
      (name: string): OnApproval =>
      () =>
        asked.push(name) > 0;
    await outer({ onApproval: noting("outer") }, { onApproval: noting("inner") });
    await outer({}, { onApproval: noting("alone") });
    expect(asked).toEqual(["outer", "alone"]);
  });

  test("that throws fails the run that asked with its error, and the call does not run", async () => {
    const store = openMemoryStore();
    const cause = new Error("No terminal.");
    const { run, paid } = paying({ persist: store, onApproval: () => Promise.reject(cause) });
    await expect(run.synchronize()).rejects.toBe(cause);
    expect([run.status, paid, (await store.head(run.id))?.openRuns]).toEqual(["failed", [], []]);
    expect((await entriesOf(store, run.id)).at(-1)).toMatchObject({
      phase: "failed",
      error: { message: "No terminal." },
    });
  });

  test.each(["yes", undefined, { approved: "yes" }, { approved: false, reason: 5 }])(
    "that returns %j fails the run, because that is not an answer",
    async (word) => {
      const { run, paid } = paying({ onApproval: () => word as never });
      await expect(run.synchronize()).rejects.toMatchObject({ code: "INVALID_OPTION", message: /onApproval gave/ });
      expect(paid).toEqual([]);
    },
  );

  test("can be preceded by an answer from another process", async () => {
    const store = openMemoryStore();
    const asked = withResolvers<Approval>();
    const late = withResolvers<boolean>();
    const { run, paid } = paying({
      persist: store,
      onApproval: (question) => {
        asked.resolve(question);
        return late.promise;
      },
    });
    await run.deny((await asked.promise).question, "Not today.");
    late.resolve(true);
    expect(resultsOf((await run).transcript)).toMatchObject([{ message: "Not today." }]);
    expect(paid).toEqual([]);
  });

  test("does not prevent a run from parking after the time in `park`", async () => {
    const { run } = paying({
      persist: openMemoryStore(),
      park: { afterMs: 1 },
      onApproval: () => new Promise(() => {}),
    });
    expect((await run).status).toBe("parked");
  });

  test("that waits for its own run gets an error", async () => {
    const { run } = paying({ onApproval: async () => (await run).status === "finished" });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "DEADLOCK" });
  });

  test("that is not a function is refused synchronously", () => {
    expect(() => paying({ onApproval: true as never })).toThrow(/onApproval is "true"; give a function/);
  });
});

test("a run that starts from a parked one is refused, because the question has no answer", async () => {
  const { run } = paying({ persist: openMemoryStore() });
  const next = runSessionLoop(run, someAgent(), { model: scripted(["Never."]) });
  await expect(next.synchronize()).rejects.toMatchObject({ code: "APPROVAL_NEEDED", message: /is parked/ });
});
