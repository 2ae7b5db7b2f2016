import { describe, expect, test } from "vitest";
import { gate } from "../../test/counted-sandbox.ts";
import { asking, callOf, calling, modelOf, nextEvent, saying, someAgent, toolOf } from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { drainRuns } from "./active-runs.ts";
import { resumeSession } from "./persist/resume-session.ts";
import { runSessionLoop } from "./run-session-loop.ts";

describe("draining the runs of a process", () => {
  test("waits for those that finish, or fail, in time", async () => {
    const { pass, open } = gate();
    const slow = runSessionLoop(asking(), someAgent(), { model: modelOf(() => pass.then(() => saying("Done."))) });
    const failing = runSessionLoop(asking(), someAgent(), {
      model: modelOf(() => pass.then(() => Promise.reject(new Error("Gone.")))),
    });
    const draining = drainRuns();
    open();
    const { finished, abandoned } = await draining;
    expect([...finished].sort()).toEqual([slow.id, failing.id].sort());
    expect(abandoned).toEqual([]);
    expect(slow.pending).toBe(false);
    expect(await drainRuns()).toEqual({ finished: [], abandoned: [] });
  });

  test("abandons runs that do not finish, so that they can be resumed where they stopped", async () => {
    const store = openMemoryStore();
    const ran: string[] = [];
    const hang = toolOf("hang", () => new Promise(() => {}));
    const later = toolOf("later", () => ran.push("later"), { exclusive: true });
    const model = scripted([calling(callOf("a", "hang"), callOf("b", "later"))]);
    const run = runSessionLoop(asking(), someAgent("Be brief."), { model, tools: [hang, later], persist: store });
    await nextEvent(run, "tool-started");
    await run.followUp("And then?");
    expect(await drainRuns({ timeoutMs: 0 })).toEqual({ finished: [], abandoned: [run.id] });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
    const { user, agent } = await resumeSession({ store, sessionId: run.id });
    const next = scripted(["Going on.", "Then this."]);
    const session = await runSessionLoop(user, agent, {
      model: next,
      tools: [hang, later],
      persist: { store, sessionId: run.id },
    });
    expect(ran).toEqual(["later"]);
    expect(next.requests[0]?.messages.slice(-2)).toMatchObject([
      { role: "tool", toolCallId: "a", isError: true },
      { role: "tool", toolCallId: "b", content: "1" },
    ]);
    expect(session.text()).toBe("Then this.");
  });

  test("ignores runs that have ended", async () => {
    await runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
    expect(await drainRuns({ timeoutMs: 0 })).toEqual({ finished: [], abandoned: [] });
  });
});
