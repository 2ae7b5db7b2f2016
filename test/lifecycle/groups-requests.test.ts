import { expect, test } from "vitest";
import { drainRuns } from "../../src/agent/active-runs.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { GroupRun } from "../../src/group/group-run.ts";
import { inputIdOf, requestIdOf } from "../../src/session/log/open-runs.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { agentOf, entriesOf, hanging, linesOf, phasesOf, stageOn } from "./groups-sample.ts";
import { payingAgent, questionIn } from "./requests-sample.ts";

test("a group starts a requested run, with its input under its id and the requester as author", async () => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  await manager.request(id, { group: "panel", input: "Go.", runId: "r" }, { actor: "ann" });
  const run = group().addAgent(agentOf("ada")).stream(id, null, { runId: "r", maxRounds: 1 });
  expect(run.id).toBe("r");
  expect(linesOf((await run).turns)).toEqual(["user: Go.", "ada: ada 1"]);
  const named = (await entriesOf(store, id)).filter(({ by }) => by !== undefined);
  expect(named.map(({ id: entryId, by }) => [entryId, by])).toEqual([
    [requestIdOf("r"), "ann"],
    [inputIdOf("r"), "ann"],
  ]);
  expect((await store.head(id))?.openRuns).toEqual([]);
  const again = group().addAgent(agentOf("ada")).stream(id, null, { runId: "r" });
  await expect(again).rejects.toMatchObject({ code: "CONFLICT" });
});

test("a group whose process has died continues under its id", async () => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  await manager.request(id, { group: "panel", input: "Go.", runId: "r" });
  const { answer, asked } = hanging();
  const agents = [agentOf("ada"), agentOf("bob", answer)] as const;
  const run = group().addAgent(agents[0]).addAgent(agents[1]).stream(id, null, { runId: "r", maxRounds: 1 });
  await asked;
  await drainRuns({ timeoutMs: 0, ids: [run.id] });
  await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  expect(await manager.due(id)).toMatchObject({ run: { runId: "r", state: "started" }, request: { group: "panel" } });
  const state = await group().addAgent(agentOf("ada")).addAgent(agentOf("bob")).resume(id, { runId: "r" });
  expect(linesOf(state.turns)).toEqual(["user: Go.", "ada: ada 1", "bob: bob 1"]);
  expect(await phasesOf(store, id)).toEqual(["started", "started", "finished"]);
});

test("a listing of runs has the start of a group without a request, after a recovery too", async () => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  await manager.addTurn(id, { role: "user", content: "Before." });
  let runId: string | null = null;
  for (let claim = 1; claim <= 2; claim++) {
    const { answer, asked } = hanging();
    const stage = group().addAgent(agentOf("ada", answer));
    const run: GroupRun = runId === null ? stage.stream(id, "Go.") : stage.stream(id, null, { runId });
    runId = run.id;
    await asked;
    const starts = (await entriesOf(store, id)).filter((entry) => entry.type === "run" && entry.phase === "started");
    const { items } = await manager.runs({ state: "running" });
    expect(starts).toHaveLength(claim);
    expect(items).toMatchObject([{ runId, requestedAt: null, startedAt: starts[0]?.timestamp }]);
    await drainRuns({ timeoutMs: 0 });
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  }
});

test("a group waits behind earlier requests, and stops when another manager cancels it", async () => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  const other = new SessionManager({ store });
  const { answer, asked } = hanging();
  const run = group().addAgent(agentOf("ada", answer)).stream(id, "Go.", { actor: "ann" });
  await asked;
  await other.request(id, { group: "panel", input: "Next.", runId: "next", ifBusy: "interrupt" });
  await expect(run).rejects.toMatchObject({ code: "ABORTED", cause: "Another run takes its place." });
  expect(await phasesOf(store, id)).toEqual(["started", "cancelled"]);
  const busy = group().addAgent(agentOf("ada")).stream(id, "Me first.");
  await expect(busy).rejects.toMatchObject({ code: "SESSION_BUSY" });
  expect(await manager.due(id)).toMatchObject({ run: { runId: "next" } });
});

test("a question of an agent in a group is answered from another manager", async () => {
  const { group, id, store } = await stageOn(openMemoryStore());
  const paid: string[] = [];
  const run = group().addAgent(payingAgent(paid)).stream(id, "Pay.", { maxRounds: 1, park: false });
  await new SessionManager({ store }).approve(id, await questionIn(store, id), { note: "Fine." });
  expect(linesOf((await run).turns).at(-1)).toBe("clerk: Result: paid");
  expect(paid).toEqual(["paid"]);
});
