import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { usage } from "../../test/sample-log.ts";
import { asking, callOf, calling, saying, someAgent, toolOf } from "../../test/sample-run.ts";
import { openLog } from "../../test/sample-run-log.ts";
import { ModelError } from "./model/model-error.ts";
import { scripted } from "../models/scripted.ts";
import { lineageUsage } from "../session/lineage/lineage.ts";
import { createHeader } from "../session/log/header.ts";
import { operation, type Session } from "../session/value/session.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { loadSession } from "../tree/persisted-session.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { openSessionWriter } from "../tree/session-writer.ts";
import { resumeSession } from "./persist/resume-session.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-usage-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const spending = (tokens: number, text = "Done.") => saying(text, { usage: usage(tokens, 0), cost: tokens / 100 });

/** Two finished runs of one token each, and the merge of them. */
async function mergedRuns(store?: SessionStore) {
  const kept = store === undefined ? {} : { persist: store };
  const answer = (text: string): Promise<Session> =>
    runSessionLoop(asking(), someAgent(), { model: scripted([spending(1, text)]), ...kept }).synchronize();
  const [left, right] = [await answer("Left."), await answer("Right.")];
  return { left, right, merge: left.merge(right) };
}

const tokensOf = ({ usage: spent }: { readonly usage: { readonly totalTokens: number } | null }): number | undefined =>
  spent?.totalTokens;

describe("the usage of a run over a merged session is the same live and when it is read later", () => {
  test("in a file: resumed, loaded and in the trailer", async () => {
    const { merge, left, right } = await mergedRuns();
    const path = join(directory, "run.jsonl");
    const output = await runSessionLoop(merge, someAgent(), { model: scripted([spending(40)]), persist: path });
    const { user } = await resumeSession(path);
    const loaded = await loadSession(path);
    expect([tokensOf(output), tokensOf(user), tokensOf(loaded), loaded.trailer?.usage.totalTokens]).toEqual([
      40, 40, 40, 40,
    ]);
    expect([output.cost, user.cost, loaded.cost]).toEqual([0.4, 0.4, 0.4]);
    const total = (last: Session) => lineageUsage([left, right, merge, last], output.id).usage.totalTokens;
    expect([total(output), total(user)]).toEqual([42, 42]);
  });

  test("in a store, where it is a fork by reference of one side with a copy of the other", async () => {
    const store = openMemoryStore();
    const { merge, left, right } = await mergedRuns(store);
    const output = await runSessionLoop(merge, someAgent(), { model: scripted([spending(40)]), persist: store });
    const { user } = await resumeSession({ store, sessionId: output.id });
    const tree = await SessionTree.on(store, output.id);
    expect([tokensOf(output), tokensOf(user), tokensOf(await tree.toSession())]).toEqual([40, 40, 40]);
    const again = await Promise.all(
      [left.id, right.id].map(async (sessionId) => (await resumeSession({ store, sessionId })).user),
    );
    const total = (last: Session, sides: readonly Session[]) =>
      lineageUsage([...sides, merge, last], output.id).usage.totalTokens;
    expect([total(output, [left, right]), total(user, again)]).toEqual([42, 42]);
  });

  test("after a failure with some usage", async () => {
    const { merge } = await mergedRuns();
    const path = join(directory, "run.jsonl");
    const first = { ...calling(callOf("a", "look")), usage: usage(40, 0) };
    const refused = new ModelError("authentication", "No.", { provider: "x" });
    const run = runSessionLoop(merge, someAgent(), {
      model: scripted([first, refused]),
      tools: [toolOf("look")],
      persist: path,
    });
    await expect(run.synchronize()).rejects.toThrow(refused);
    expect(tokensOf(await loadSession(path))).toBe(40);
  });
});

test("the usage of a recovered run is that of all its claims, live and loaded, and its lineage counts it once", async () => {
  const { merge } = await mergedRuns();
  const path = join(directory, "run.jsonl");
  const { log } = await openLog(path, merge);
  await log.append([{ type: "message", message: { ...calling(callOf("a", "look")), usage: usage(40, 0) } }]);
  await log.abandon();
  const { user, agent } = await resumeSession(path);
  expect(tokensOf(user)).toBe(40);
  const output = await runSessionLoop(user, agent, {
    model: scripted([spending(10)]),
    tools: [toolOf("look")],
    persist: path,
  });
  expect(tokensOf(output)).toBe(50);
  expect(lineageUsage([user, output], output.id).usage.totalTokens).toBe(50);
  const loaded = await loadSession(path);
  expect([tokensOf(loaded), loaded.trailer?.usage.totalTokens]).toEqual([50, 50]);
});

test("rows from another session in a run's file count in that session", async () => {
  const path = join(directory, "run.jsonl");
  await runSessionLoop(asking(), someAgent(), { model: scripted([spending(5)]), persist: path });
  const { left } = await mergedRuns();
  const { user, agent } = await resumeSession(path);
  await runSessionLoop(user.merge(left), agent, { model: scripted([spending(7)]), persist: path });
  expect(tokensOf(await loadSession(path))).toBe(12);
});

test("the usage of a compress is that of its answer, although the answer is not a row", async () => {
  const path = join(directory, "short.jsonl");
  const options = { model: scripted([spending(9, "In short.")]), persist: path };
  const short = await runSessionCompress(asking(), someAgent(), options);
  expect([tokensOf(short), tokensOf(await loadSession(path))]).toEqual([9, 9]);
});

test("a fork has the usage since the fork, and so does a recovered run in it", async () => {
  const store = openMemoryStore();
  const { left } = await mergedRuns(store);
  const lineage = operation("op_fork", "fork", [left.id]);
  const { header } = await store.fork(left.id, createHeader({ lineage }), {});
  const fork = await SessionTree.on(store, header.id);
  expect(tokensOf(await fork.toSession())).toBeUndefined();
  await fork.appendMessage(spending(3));
  expect(tokensOf(await fork.toSession())).toBe(3);
  const { log, request } = await openLog(store, left);
  await log.append([{ type: "message", message: spending(40) }]);
  await log.abandon();
  expect(tokensOf((await resumeSession({ store, sessionId: request.output.id })).user)).toBe(40);
});

test("the usage of a session that was written row by row is the sum of its rows", async () => {
  const output = await runSessionLoop(asking(), someAgent(), { model: scripted([spending(7)]) });
  await using writer = await openSessionWriter(output, { directory });
  for (const row of output.transcript) await writer.writeRow(row);
  await writer.close();
  const loaded = await loadSession(writer.path);
  expect([tokensOf(loaded), loaded.trailer?.usage.totalTokens]).toEqual([7, 7]);
});
