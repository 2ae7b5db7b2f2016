import { expect, test } from "vitest";
import type { Approval } from "../../src/session/log/run-event.ts";
import type { RunView } from "../../src/http/client/index.ts";
import { answerIdOf } from "../../src/session/log/open-runs.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { allOf, logOf, nextOf, openRunServer } from "./runs-server.ts";

const paying = (paid: string[]) =>
  toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, { needsApproval: () => true });

test("a call that needs approval waits for an answer, which approves or denies it", async () => {
  const paid: string[] = [];
  const agent = answering(
    [calling(callOf("a/1", "pay", { euros: 5 }), callOf("..", "pay"), callOf("3", "pay")), "Done."],
    [paying(paid)],
  );
  const { client, store, sessionId } = await openRunServer({ agents: { helper: agent } });
  const run = await client.runs.start(sessionId, { input: "Pay." });
  const asked: Approval[] = [];
  for await (const event of client.runs.events(sessionId, run.runId)) {
    if (event.type === "approval-required" && asked.push(event.approval) === 3) break;
  }
  const [first = "", second = "", third = ""] = asked.map(({ question }) => question);
  const waiting = await client.runs.get(sessionId, run.runId);
  expect(waiting).toMatchObject({ status: "running" });
  expect(waiting.questions[0]).toEqual({
    question: first,
    callId: "a/1",
    name: "pay",
    arguments: { euros: 5 },
    effects: "commands",
    reach: null,
    askedAt: expect.any(String),
  });
  const left = ({ questions }: RunView): string[] => questions.map(({ callId }) => callId);
  expect(left(await client.runs.approve(sessionId, first))).toEqual(["..", "3"]);
  expect(left(await client.runs.deny(sessionId, second, { reason: "Too dear." }))).toEqual(["3"]);
  expect(left(await client.runs.deny(sessionId, second, { reason: "Too dear." }))).toEqual(["3"]);
  await expect(client.runs.approve(sessionId, second)).rejects.toMatchObject({ code: "CONFLICT", status: 409 });
  await expect(client.runs.approve(sessionId, "9")).rejects.toMatchObject({ code: "QUESTION_NOT_FOUND", status: 404 });
  await client.runs.approve(sessionId, third, { note: "By phone." });
  await nextOf(client, run, "run-finished");
  expect(paid).toEqual(["a/1", "3"]);
  expect(await client.runs.get(sessionId, run.runId)).toMatchObject({ status: "finished", questions: [] });
  const log = (await logOf(store, sessionId)).join("\n");
  expect(log).toContain("Too dear.");
  const answer = await client.sessions.entry(sessionId, answerIdOf(third));
  expect(answer).toMatchObject({ by: "ann", note: "By phone.", question: third });
  expect(await client.runs.approve(sessionId, third, { note: "By phone." })).toMatchObject({ status: "finished" });
});

test("a cancelled run ends immediately, and the model's partial answer is kept", async () => {
  const never = gate();
  const agent = answering([pausing(["Once upon", " a time"], never)]);
  const { client, store, sessionId } = await openRunServer({ agents: { helper: agent } });
  const run = await client.runs.start(sessionId, { input: "Tell me a story." });
  await nextOf(client, run, "text-delta");
  expect(await client.runs.cancel(sessionId, run.runId, { reason: "Enough." })).toMatchObject({
    status: "cancelled",
    output: null,
    problem: null,
  });
  expect((await allOf(client, run)).at(-1)).toMatchObject({ type: "run-failed", error: { code: "ABORTED" } });
  expect(await client.runs.cancel(sessionId, run.runId)).toMatchObject({ status: "cancelled" });
  expect((await logOf(store, sessionId)).slice(-2)).toEqual(["assistant: Once upon", "cancelled"]);
});

test("input to a run is delivered before the next round, or when it would stop", async () => {
  const looking = gate();
  const agent = answering(
    [calling(callOf("1", "look")), "It is blue.", "It is deep."],
    [toolOf("look", () => looking.opened.then(() => "seen"))],
  );
  const { client, store, sessionId } = await openRunServer({ agents: { helper: agent } });
  const run = await client.runs.start(sessionId, { input: "Look." });
  await nextOf(client, run, "tool-started");
  await client.runs.steer(sessionId, "At the sea.");
  await client.runs.followUp(sessionId, [{ type: "text", text: "And how deep?" }]);
  looking.open();
  await nextOf(client, run, "run-finished");
  expect((await logOf(store, sessionId)).filter((line) => /^(user|assistant):/.test(line))).toEqual([
    "user: Look.",
    "assistant: [look]",
    "user: At the sea.",
    "assistant: It is blue.",
    "user: And how deep?",
    "assistant: It is deep.",
  ]);
  await expect(client.runs.steer(sessionId, "Too late.")).rejects.toMatchObject({ code: "RUN_ENDED", status: 409 });
});

test("a second run on a session is refused, waits, or replaces the first, and never interleaves with it", async () => {
  const first = gate();
  const agents = { slow: answering([pausing(["one", " two"], first), "unused"]), quick: answering(["quick", "quick"]) };
  const { client, store, sessionId } = await openRunServer({ agents });
  const slow = await client.runs.start(sessionId, { input: "Slowly.", agent: "slow" });
  await nextOf(client, slow, "text-delta");
  const quickly = { input: "Quickly.", agent: "quick" };
  await expect(client.runs.start(sessionId, quickly)).rejects.toMatchObject({ code: "SESSION_BUSY", status: 409 });
  const queued = await client.runs.start(sessionId, { ...quickly, ifBusy: "enqueue" });
  expect(queued.status).toBe("requested");
  first.open();
  await nextOf(client, queued, "run-finished");
  const whole = ["user: Slowly.", "started", "assistant: one two", "finished"];
  expect(await logOf(store, sessionId)).toEqual([
    ...whole,
    "user: Quickly.",
    "started",
    "assistant: quick",
    "finished",
  ]);
  expect((await client.runs.ofSession(sessionId)).map(({ runId }) => runId)).toEqual([queued.runId, slow.runId]);
});

test("a run that interrupts another ends it and begins when it has ended", async () => {
  const agents = { slow: answering([pausing(["one", " two"], gate())]), quick: answering(["quick"]) };
  const { client, store, sessionId } = await openRunServer({ agents });
  const slow = await client.runs.start(sessionId, { input: "Slowly.", agent: "slow" });
  await nextOf(client, slow, "text-delta");
  const quick = await client.runs.start(sessionId, { input: "Quickly.", agent: "quick", ifBusy: "interrupt" });
  await nextOf(client, quick, "run-finished");
  expect(await client.runs.get(sessionId, slow.runId)).toMatchObject({ status: "cancelled" });
  expect(await logOf(store, sessionId)).toEqual([
    ...["user: Slowly.", "started", "assistant: one", "cancelled"],
    ...["user: Quickly.", "started", "assistant: quick", "finished"],
  ]);
});

test("of ten runs that are started on one session at the same time, one starts and nine are refused", async () => {
  const hold = gate();
  const { client, sessionId, store } = await openRunServer({
    agents: { slow: answering([pausing(["a", "b"], hold)]) },
  });
  const starts = await Promise.allSettled(
    Array.from({ length: 10 }, () => client.runs.start(sessionId, { input: "Mine." })),
  );
  const refused = starts.flatMap((start) => (start.status === "rejected" ? start.reason.code : []));
  expect(refused).toEqual(Array.from({ length: 9 }, () => "SESSION_BUSY"));
  expect(await client.runs.ofSession(sessionId)).toHaveLength(1);
  hold.open();
  const [run] = await client.runs.ofSession(sessionId);
  await nextOf(client, run as RunView, "run-finished");
  expect(await logOf(store, sessionId)).toEqual(["user: Mine.", "started", "assistant: ab", "finished"]);
});
