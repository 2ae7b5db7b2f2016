import { describe, expect, onTestFinished, test } from "vitest";
import { CountedBackend, gate } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  modelOf,
  nextEvent,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { Session } from "../session/value/session.ts";
import { createAgent } from "./agent.ts";
import { EVENTS_MAX } from "./event-log.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";

const failure = new Error("The provider is gone.");

describe("a run", () => {
  test("has its id, lineage and sandbox synchronously, before the first request", async () => {
    const backend = new CountedBackend();
    const user = asking().to(backend.name);
    const sandbox = await user.requireSandbox();
    const agent = someAgent();
    const model = scripted(["Done."]);
    const run = runSessionLoop(user, agent, { model });
    expect(model.requests).toHaveLength(0);
    expect(run.lineage).toMatchObject({
      kind: "op_session_loop",
      operator: "runSessionLoop",
      parents: [user.id, agent.id],
    });
    expect(run.sandbox).toBe(sandbox);
    expect(run.pending).toBe(true);
    const { id } = run;
    const session = await run;
    expect(session.id).toBe(id);
    expect(run.pending).toBe(false);
  });

  test("returns the same session to everyone who awaits it, in every way and at any time", async () => {
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    const [first, second, third] = await Promise.all([run, run.synchronize(), run.then((session) => session)]);
    expect(first).toBeInstanceOf(Session);
    expect(second).toBe(first);
    expect(third).toBe(first);
    expect(await run).toBe(first);
    expect(await run.synchronize()).toBe(first);
  });

  test("rejects every await with the same error object, and its transcript stays readable", async () => {
    const model = scripted([calling(callOf("a", "look")), failure]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")] });
    const errors = await Promise.all(
      [run, run.synchronize(), run].map((each) => Promise.resolve(each).catch((e) => e)),
    );
    expect(errors).toEqual([failure, failure, failure]);
    for (const error of errors) expect(error).toBe(failure);
    await expect(run.synchronize()).rejects.toBe(failure);
    expect(run.pending).toBe(false);
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [look]", "tool: done"]);
  });

  test("that fails causes no unhandled rejection if no one awaits it", async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on("unhandledRejection", listener);
    onTestFinished(() => {
      process.off("unhandledRejection", listener);
    });
    const run = runSessionLoop(asking(), someAgent(), { model: scripted([failure]) });
    const events = await eventsOf(run);
    // Node reports rejections after the microtasks of a turn.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(events.at(-1)).toMatchObject({ type: "run-failed", error: { message: failure.message } });
    expect(unhandled).toEqual([]);
  });

  test("has a live transcript", async () => {
    const { pass, open } = gate();
    const seen: string[][] = [];
    const slow = toolOf("slow", () => pass);
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "slow")), "Done."]),
      tools: [slow],
    });
    for await (const event of run) {
      if (event.type !== "tool-started") continue;
      seen.push(shortly(run.transcript));
      open();
    }
    expect(seen).toEqual([["user: Do it.", "assistant: [slow]"]]);
  });
});

describe("the events of a run", () => {
  test("start from the beginning for every reader, however late", async () => {
    const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    const [early, alsoEarly] = await Promise.all([eventsOf(run), eventsOf(run)]);
    const late = await eventsOf(run);
    expect(early.map(({ type }) => type)).toEqual([
      "run-started",
      "round-started",
      "text-delta",
      "round-finished",
      "run-finished",
    ]);
    expect(alsoEarly).toEqual(early);
    expect(late).toEqual(early);
  });

  test("are bounded: a late reader gets the number of missed events, and then the last ones in order", async () => {
    const pieces = EVENTS_MAX * 2 + 500;
    const model = modelOf(() => Promise.reject(failure), {
      async *stream() {
        for (let index = 0; index < pieces; index++) yield { type: "text-delta", text: `${index} ` };
        yield { type: "finish", stopReason: "stop" };
      },
    });
    const run = runSessionLoop(asking(), someAgent(), { model });
    await run;
    const events = await eventsOf(run);
    const [dropped, ...kept] = events;
    expect(dropped).toMatchObject({ type: "events-dropped", count: EVENTS_MAX, runId: kept[0]?.runId });
    expect(kept.length).toBeGreaterThanOrEqual(EVENTS_MAX);
    expect(kept.length).toBeLessThan(EVENTS_MAX * 2);
    // The first events of all are `run-started` and `round-started`, so that the piece with number n is event n + 2.
    expect(kept[0]).toMatchObject({ type: "text-delta", round: 1, text: `${EVENTS_MAX - 2} ` });
    expect(kept.at(-1)?.type).toBe("run-finished");
  });

  test("reach a slow reader, with the number of missed events once", async () => {
    const { pass, open } = gate();
    const pieces = EVENTS_MAX * 2;
    const model = modelOf(() => Promise.reject(failure), {
      async *stream() {
        yield { type: "text-delta", text: "first" };
        await pass;
        for (let index = 0; index < pieces; index++) yield { type: "text-delta", text: "." };
        yield { type: "finish", stopReason: "stop" };
      },
    });
    const run = runSessionLoop(asking(), someAgent(), { model });
    const reader = run[Symbol.asyncIterator]();
    expect((await reader.next()).value).toMatchObject({ type: "run-started" });
    expect((await reader.next()).value).toMatchObject({ type: "round-started", round: 1 });
    expect((await reader.next()).value).toMatchObject({ text: "first" });
    open();
    await run;
    expect((await reader.next()).value).toMatchObject({ type: "events-dropped", count: EVENTS_MAX - 3 });
    let rest = 0;
    for (let next = await reader.next(); !next.done; next = await reader.next()) rest += 1;
    expect(rest).toBe(3 + pieces + 2 - EVENTS_MAX);
  });
});

describe("a run as input", () => {
  test("of a loop is awaited first, and its rows come first", async () => {
    const agent = someAgent();
    const first = runSessionLoop(asking("One?"), agent, { model: scripted(["One."]) });
    const model = scripted(["Two."]);
    const second = runSessionLoop(first, agent, { model });
    expect(second.lineage.parents).toEqual([first.id, agent.id]);
    const session = await second;
    expect(first.pending).toBe(false);
    expect(shortly(session.transcript)).toEqual(["user: One?", "assistant: One.", "assistant: Two."]);
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant"]);
  });

  test("of a compress and of an agent is awaited too", async () => {
    const run = () => runSessionLoop(asking("One?"), someAgent(), { model: scripted(["One."]) });
    const compressed = await runSessionCompress(run(), someAgent(), { model: scripted(["In short: one."]) });
    expect(shortly(compressed.transcript)).toEqual(["user: In short: one."]);
    const answered = await createAgent({ prompt: "Go on.", model: scripted(["Two."]) }).run(run());
    expect(shortly(answered.transcript)).toEqual(["user: One?", "assistant: One.", "assistant: Two."]);
  });

  test("that fails makes the second one fail with the same error, without asking its model", async () => {
    const first = runSessionLoop(asking(), someAgent(), { model: scripted([failure]) });
    const model = scripted(["Two."]);
    await expect(runSessionLoop(first, someAgent(), { model }).synchronize()).rejects.toBe(failure);
    await expect(runSessionCompress(first, someAgent(), { model })).rejects.toBe(failure);
    expect(model.requests).toHaveLength(0);
  });

  test("does not delay an abort of the second one", async () => {
    const { pass, open } = gate();
    const first = runSessionLoop(asking(), someAgent(), { model: modelOf(() => pass.then(() => saying("One."))) });
    const second = runSessionLoop(first, someAgent(), { model: scripted([]) });
    // Both began in the same turn, so that the second waits for the first by now.
    await nextEvent(first, "round-started");
    second.abort();
    await expect(second.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
    expect(first.pending).toBe(true);
    open();
    await first;
  });

  test("passes on the sandbox that it opened", async () => {
    const backend = new CountedBackend();
    const opens = toolOf("opens", async (_args, context) => (await context.requireSandbox()).id);
    const first = runSessionLoop(asking().to(backend.name), someAgent(), {
      model: scripted([calling(callOf("a", "opens")), "Opened."]),
      tools: [opens],
    });
    const second = await runSessionLoop(first, someAgent(), { model: scripted(["Two."]) });
    const held = await first;
    expect(second.sandbox).toBe(held.sandbox);
    expect(second.sandbox).not.toBeNull();
    await held.closeSandbox();
    expect(backend.live.size).toBe(1);
    await second.closeSandbox();
    expect(backend.live.size).toBe(0);
  });
});

test("a thousand concurrent runs all finish, with separate events", async () => {
  const count = 1000;
  const { pass, open } = gate();
  let asked = 0;
  const model = modelOf(async ({ messages }) => {
    asked += 1;
    if (asked === count) open();
    // No answer comes before all requests were sent, so that all runs overlap.
    await pass;
    const last = messages.at(-1);
    return last?.role === "tool"
      ? saying(`done ${last.content}`)
      : calling(callOf("c", "echo", { said: last?.content }));
  });
  const echo = toolOf("echo", (args) => (args as { said: string }).said);
  const runs = Array.from({ length: count }, (_, index) =>
    runSessionLoop(asking(`number ${index}`), someAgent(), { model, tools: [echo] }),
  );
  const sessions = await Promise.all(runs);
  expect(sessions.map((session) => session.text())).toEqual(runs.map((_, index) => `done number ${index}`));
  expect(new Set(sessions.map(({ id }) => id)).size).toBe(count);
  expect(sessions.every(({ transcript }) => transcript.length === 4)).toBe(true);
});
