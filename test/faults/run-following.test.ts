import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { answerIdOf } from "../../src/session/log/open-runs.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makeDirectory } from "./jsonl-support.ts";
import { type Running, start } from "./program-support.ts";

interface WaitingProcess {
  readonly path: string;
  readonly store: SessionStore;
  readonly program: Running;
  readonly sessionId: string;
  readonly runId: string;
  readonly answer: (approved: boolean) => EntryDraft;
}

/** A process whose run waits for an answer, and the same store opened in this process. */
async function asking(afterMs = "never"): Promise<WaitingProcess> {
  const path = join(await makeDirectory(), "skein.db");
  const program = start("run-follow.mjs", [path, "start", afterMs]);
  while (program.lines().length === 0) await program.more();
  const [, sessionId = "", runId = "", question = ""] = program.lines()[0]?.split(" ") ?? [];
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  const answer = (approved: boolean): EntryDraft => {
    const named = { id: answerIdOf(question), runId, callId: "1", question };
    return { type: "approval", ...named, decision: { approved } };
  };
  return { path, store, program, sessionId, runId, answer };
}

async function restOf({ ended, lines }: Running): Promise<string[]> {
  await ended;
  return lines().slice(1);
}

test("a run in another process receives an approval", async () => {
  const { store, program, sessionId, answer } = await asking();
  await store.append(sessionId, [answer(true)], { by: "ada" });
  expect(await restOf(program)).toEqual(["paid", "finished: assistant Done."]);
});

test("a run in another process receives a cancel, and records it", async () => {
  const { store, program, sessionId, runId } = await asking();
  await store.append(sessionId, [{ type: "cancel", runId, reason: "Enough." }]);
  expect(await restOf(program)).toEqual(["aborted: ABORTED Enough."]);
  expect([(await store.head(sessionId))?.openRuns, await store.leaseOf(sessionId)]).toEqual([[], null]);
});

test("a run in another process receives steering input", async () => {
  const { store, program, sessionId, runId, answer } = await asking();
  await store.append(sessionId, [{ type: "queued", runId, kind: "steer", content: "Hurry." }, answer(true)]);
  expect(await restOf(program)).toEqual(["paid", "finished: assistant Done.", "heard"]);
});

test("a parked run ends its process, and continues once in another one after the answer", async () => {
  const { path, store, program, sessionId, runId, answer } = await asking("1");
  expect((await restOf(program)).map((line) => line.split(":")[0])).toEqual(["parked"]);
  expect((await store.head(sessionId))?.openRuns).toMatchObject([{ runId, state: "parked" }]);
  expect(await store.leaseOf(sessionId)).toBeNull();
  await store.append(sessionId, [answer(true)]);
  const others = [0, 1].map(() => start("run-follow.mjs", [path, sessionId]));
  await Promise.all(others.map(({ ended }) => ended));
  const lines = others.flatMap((other) => other.lines());
  expect(lines.filter((line) => line === "paid")).toEqual(["paid"]);
  expect((await store.head(sessionId))?.openRuns).toEqual([]);
});
