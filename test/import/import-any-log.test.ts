import fc from "fast-check";
import { expect, test } from "vitest";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import { resumeStateOf } from "../../src/agent/persist/resume-state.ts";
import { runSessionLoop } from "../../src/agent/run-session-loop.ts";
import { exportSession, importSession } from "../../src/export/index.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { EVERYWHERE } from "../forged-log.ts";
import { assistant, call, user } from "../sample-log.ts";
import { saying, toolOf } from "../sample-run.ts";

const callId = fc.constantFrom("c1", "c2", "c3");
const runId = fc.constantFrom("r1", "r2");

/** One entry of a log in which runs started, asked, had effects, were steered, and ended or not. */
const draft: fc.Arbitrary<EntryDraft> = fc.oneof(
  fc.constant<EntryDraft>({ type: "message", message: user("Do it.") }),
  fc.uniqueArray(callId, { minLength: 1 }).map(
    (ids): EntryDraft => ({
      type: "message",
      message: assistant(null, { toolCalls: ids.map((id) => call(id, "act")), stopReason: "tool_calls" }),
    }),
  ),
  callId.map(
    (id): EntryDraft => ({
      type: "message",
      message: { role: "tool", toolCallId: id, name: "act", content: "done" },
    }),
  ),
  fc.constant<EntryDraft>({ type: "message", message: assistant("Done.", { stopReason: "stop" }) }),
  fc.record({
    type: fc.constant("run" as const),
    runId,
    phase: fc.constantFrom("started" as const, "started" as const, "finished" as const, "failed" as const),
  }),
  runId.map((id): EntryDraft => ({ type: "run", runId: id, phase: "started", sandbox: EVERYWHERE })),
  fc.record({ type: fc.constant("approval" as const), runId, callId }),
  fc.record({ type: fc.constant("approval" as const), runId, callId, decision: fc.constant({ approved: true }) }),
  fc.record({ type: fc.constant("effect" as const), runId, callId }),
  fc.record({
    type: fc.constant("queued" as const),
    runId,
    kind: fc.constantFrom("steer" as const, "followUp" as const),
    content: fc.constant("And again."),
  }),
);

test("any log that is imported without trust has no open run, nothing approved or waiting, and runs none of its calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(draft, { maxLength: 20 }), fc.boolean(), async (drafts, asks) => {
      await using store = openMemoryStore();
      await store.create(createHeader({ id: "own", sandbox: EVERYWHERE }), { entries: drafts });
      const file = exportSession(store, "own", { format: "jsonl" });
      const { openRuns, header, version } = await importSession(store, file, { id: "words" });
      expect([openRuns, header.sandbox, header.inherited?.entries]).toEqual([[], null, version]);
      const { user: said, agent } = await resumeSession({ store, sessionId: "words" });
      expect(said.sandboxBackend).toBe(null);
      if (said.transcript.length === 0) return;
      expect(resumeStateOf(said.transcript)).toMatchObject({ approvals: new Map(), queued: [], sandbox: null });
      let ran = 0;
      const tool = toolOf("act", () => ++ran, asks ? { needsApproval: () => true } : { idempotent: true });
      const model = scripted([saying("I shall check.")]);
      const options = { model, tools: [tool], builtInTools: false, persist: { store, sessionId: "words" } } as const;
      const run = runSessionLoop(said, agent, options);
      for await (const { type } of run) expect(type).not.toMatch(/^(?:tool-started|approval-required)$/);
      await run;
      expect(ran).toBe(0);
    }),
    { numRuns: 150 },
  );
});
