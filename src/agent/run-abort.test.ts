import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { gate } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  collectWarnings,
  modelOf,
  nextEvent,
  shortly,
  someAgent,
  streamOf,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { Session } from "../session/value/session.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";

const never = () => new Promise<never>(() => {});

/** The run was aborted, and its messages can be continued. */
async function aborted(run: SessionRun, cause: unknown): Promise<void> {
  await expect(run.synchronize()).rejects.toMatchObject({
    code: "ABORTED",
    cause,
    message: `Run ${run.id} was aborted.`,
  });
  expect(run.pending).toBe(false);
  const next = await runSessionLoop(Session.of(run.transcript), someAgent(), { model: scripted(["Going on."]) });
  expect(next.text()).toBe("Going on.");
}

describe("an abort ends a run immediately", () => {
  test("during an answer, and the text so far is kept", async () => {
    const model = scripted([
      async function* () {
        yield { type: "thinking-delta", text: "Hm." };
        yield { type: "text-delta", text: "Half an " };
        yield { type: "text-delta", text: "answ" };
        await never();
      },
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model, agentName: "Ada" });
    await nextEvent(run, "text-delta", ({ text }) => text === "answ");
    run.abort("enough");
    await aborted(run, "enough");
    expect(run.transcript.at(-1)?.message).toEqual({
      role: "assistant",
      content: "Half an answ",
      provider: "scripted",
      model: "scripted",
      agent: "Ada",
      stopReason: "aborted",
    });
  });

  test("during an answer without text, and nothing is kept", async () => {
    const model = scripted([
      async function* () {
        yield { type: "tool-call-delta", index: 0, id: "a", name: "look", arguments: "{" };
        await never();
      },
    ]);
    const run = runSessionLoop(asking(), someAgent(), { model });
    await nextEvent(run, "tool-call-delta");
    run.abort("enough");
    await aborted(run, "enough");
    expect(shortly(run.transcript)).toEqual(["user: Do it."]);
  });

  test("if the model ignores its signal, and its stream is then read no further", async () => {
    const { pass, open } = gate();
    let yielded = 0;
    let returned = false;
    const model = streamOf(async function* () {
      try {
        yield { type: "text-delta", text: "One." };
        await pass;
        for (; yielded < 1000; yielded++) yield { type: "text-delta", text: "More." };
      } finally {
        returned = true;
      }
    });
    const run = runSessionLoop(asking(), someAgent(), { model });
    await nextEvent(run, "text-delta");
    run.abort("enough");
    await aborted(run, "enough");
    open();
    await expect.poll(() => returned).toBe(true);
    expect(yielded).toBe(0);
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: One."]);
  });

  test("if the model never answers, or answers later", async () => {
    for (const later of [never, () => Promise.reject(new Error("Later."))]) {
      const { pass, open } = gate();
      const run = runSessionLoop(asking(), someAgent(), { model: modelOf(() => pass.then(later)) });
      await nextEvent(run, "round-started");
      run.abort("enough");
      await aborted(run, "enough");
      open();
    }
  });

  test("during a tool that never returns, whose signal is aborted", async () => {
    let signal: AbortSignal | undefined;
    const hang = toolOf("hang", (_args, context) => {
      signal = context.signal;
      return never();
    });
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "hang"))]),
      tools: [hang],
    });
    await nextEvent(run, "tool-started");
    run.abort("enough");
    await aborted(run, "enough");
    expect(signal?.reason).toMatchObject({ code: "ABORTED", cause: "enough" });
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [hang]"]);
  });

  test("during a tool with its own time limit", async () => {
    const hang = toolOf("hang", never, { timeoutMs: 1_000_000 });
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "hang"))]),
      tools: [hang],
    });
    await nextEvent(run, "tool-started");
    run.abort("enough");
    await aborted(run, "enough");
  });

  test("while arguments are checked, and the answer is kept", async () => {
    const { pass, open } = gate();
    const slow = toolOf("slow", () => "done", {
      check: () => {
        open();
        return never();
      },
    });
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "slow"))]),
      tools: [slow],
    });
    await pass;
    run.abort("enough");
    await aborted(run, "enough");
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [slow]"]);
  });

  test("between the calls of a round: calls that have not started do not start", async () => {
    const ran: string[] = [];
    const first = toolOf("first", () => {
      ran.push("first");
      run.abort("enough");
      return "done";
    });
    const second = toolOf("second", () => ran.push("second"), { exclusive: true });
    const run: SessionRun = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "first"), callOf("b", "second"))]),
      tools: [first, second],
    });
    await aborted(run, "enough");
    expect(ran).toEqual(["first"]);
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [first] [second]", "tool: done"]);
  });

  test("before it starts, without a request or a write", async () => {
    const store = openMemoryStore();
    const model = scripted(["Never asked for."]);
    const run = runSessionLoop(asking(), someAgent(), { model, persist: store });
    const said = run.steer("Too late.");
    run.abort("changed my mind");
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "changed my mind" });
    await expect(said).rejects.toMatchObject({ code: "RUN_ENDED" });
    const late = runSessionLoop(asking(), someAgent(), { model, persist: store, signal: AbortSignal.abort("already") });
    await expect(late.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "already" });
    expect(model.requests).toHaveLength(0);
    expect(await store.count()).toBe(0);
  });
});

describe("a caller's signal", () => {
  test("aborts the run with its reason as the cause", async () => {
    const controller = new AbortController();
    const run = runSessionLoop(asking(), someAgent(), { model: modelOf(never), signal: controller.signal });
    await nextEvent(run, "round-started");
    const reason = new Error("The user left.");
    controller.abort(reason);
    await aborted(run, reason);
  });

  test("has one listener for any number of runs, and none afterwards", async () => {
    const { messages, settled } = collectWarnings();
    const controller = new AbortController();
    const listeners = () => getEventListeners(controller.signal, "abort").length;
    const { pass, open } = gate();
    const model = modelOf(async () => {
      await pass;
      return { role: "assistant", content: "Done.", stopReason: "stop" };
    });
    const runs = Array.from({ length: 50 }, () =>
      runSessionLoop(asking(), someAgent(), { model, signal: controller.signal }),
    );
    const failing = runSessionLoop(asking(), someAgent(), { model: scripted([]), signal: controller.signal });
    expect(listeners()).toBe(1);
    await expect(failing.synchronize()).rejects.toThrow();
    expect(listeners()).toBe(1);
    open();
    await Promise.all(runs);
    expect(listeners()).toBe(0);
    await settled();
    expect(messages).toEqual([]);
    // The signal still works for later listeners.
    const last = runSessionLoop(asking(), someAgent(), { model: modelOf(never), signal: controller.signal });
    await nextEvent(last, "round-started");
    controller.abort("late");
    await aborted(last, "late");
    expect(listeners()).toBe(0);
  });

  test("aborts all of its runs, and not those of another", async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const start = (signal: AbortSignal) => runSessionLoop(asking(), someAgent(), { model: modelOf(never), signal });
    const mine = [start(one.signal), start(one.signal)];
    const theirs = start(other.signal);
    await Promise.all([...mine, theirs].map((run) => nextEvent(run, "round-started")));
    one.abort("mine");
    for (const run of mine) await aborted(run, "mine");
    expect(theirs.pending).toBe(true);
    other.abort();
    await expect(theirs.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
  });
});

test("an abort after the end changes nothing", async () => {
  const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
  const session = await run;
  run.abort();
  expect(await run).toBe(session);
});
