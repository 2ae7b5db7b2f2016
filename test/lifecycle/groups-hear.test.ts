import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { pollFollowers } from "../../src/agent/persist/log-follower.ts";
import { scripted } from "../../src/models/scripted.ts";
import { answerIdOf } from "../../src/session/log/open-runs.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { stageOn } from "./groups-sample.ts";

const pay = toolOf("pay", () => "paid", { needsApproval: () => true });

async function asking() {
  const { group, id, store } = await stageOn(openMemoryStore());
  const model = scripted([calling(callOf("1", "pay")), "Done."]);
  const agent = createAgent({ prompt: "", model, name: "ada", tools: [pay], park: { afterMs: 0 } });
  const run = group().addAgent(agent).stream(id, "Go.", { maxRounds: 1 });
  for await (const event of run) {
    if (event.type === "approval-required") return { id, store, run, approval: event.approval, runId: event.runId };
  }
  throw new Error("The group ended without a question.");
}

test("an agent of a group receives the answer to its question from another process, and does not park in the meantime", async () => {
  const { id, store, approval, run } = await asking();
  const { question, callId } = approval;
  const asks = await store.getEntry(id, question);
  const runId = asks?.type === "approval" ? asks.runId : "";
  const answer = { id: answerIdOf(question), runId, callId, question, decision: { approved: true } };
  await store.append(id, [{ type: "approval", ...answer }]);
  await pollFollowers(store, id);
  expect((await run).turns?.some(({ content }) => content === "Done.")).toBe(true);
});

test("a group stops if another process cancels its run", async () => {
  const { id, store, run } = await asking();
  await store.append(id, [{ type: "cancel", runId: run.id, reason: "Enough." }]);
  await expect(Promise.resolve(run)).rejects.toMatchObject({ code: "ABORTED", cause: "Enough." });
  expect([(await store.head(id))?.openRuns, await store.leaseOf(id)]).toEqual([[], null]);
});
