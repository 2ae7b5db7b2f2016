import { expect, test } from "vitest";
import { assistant, message, user } from "../../../test/sample-log.ts";
import { modelOf, saying } from "../../../test/sample-run.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { resumeSession } from "./resume-session.ts";
import { runSessionLoop } from "../run-session-loop.ts";

const started: EntryDraft = { type: "run", runId: "r", phase: "started", claim: 1 };

test.each<[string, EntryDraft[], number]>([
  ["is not asked again", [message("a", user("hi")), started, message("b", assistant("done"))], 0],
  ["is asked where the answer was cut", [started, message("b", assistant("do", { stopReason: "length" }))], 1],
  ["is asked where the answer was another run's", [message("b", assistant("done")), started], 1],
  [
    "is asked where someone said something since",
    [started, message("b", assistant("done")), { type: "queued", runId: "r", kind: "followUp", content: "and?" }],
    1,
  ],
])("the model of a run whose process died after the last answer %s", async (_behaviour, drafts, asked) => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s" }));
  await store.append("s", drafts);
  const resumed = await resumeSession({ store, sessionId: "s" });
  let requests = 0;
  const model = modelOf(async () => {
    requests += 1;
    return saying("another");
  });
  const run = runSessionLoop(resumed.user, resumed.agent, { model, persist: store });
  await run;
  expect([requests, run.runId, run.status]).toEqual([asked, "r", "finished"]);
  expect((await store.head("s"))?.openRuns).toEqual([]);
});
