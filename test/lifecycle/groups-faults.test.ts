import { expect } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { call } from "../sample-log.ts";
import { calling, callOf, toolOf } from "../sample-run.ts";
import { agentOf, entriesOf, eventsOf, hanging, linesOf, onEveryStore, phasesOf } from "./groups-sample.ts";

const boom = Object.assign(new RangeError("boom"), { code: "BOOM" });

onEveryStore("a group in trouble", {
  "records an agent that throws, ends with its state stored, and asks that agent again when the group continues":
    async ({ group, id, store }, reopen) => {
      const bob = agentOf("bob", boom);
      const run = group()
        .addAgent(agentOf("ada"))
        .addAgent(bob)
        .addAgent(agentOf("cid"))
        .stream(id, "Go.", { maxRounds: 1 });
      const state = await run;
      expect(linesOf(state.turns)).toEqual(["user: Go.", "ada: ada 1", "bob: "]);
      expect(state.turns[2]).toMatchObject({
        content: null,
        stopReason: "error",
        metadata: { error: { name: "RangeError", message: "boom", code: "BOOM" } },
      });
      const error = { code: "BOOM", message: "boom" };
      expect(run.outcome).toEqual({ reason: "agent-failed", agent: "bob", error });
      expect(run.outcome).toHaveProperty("error.cause", boom);
      expect((await eventsOf(run)).slice(-2)).toEqual([
        { type: "agent-failed", agent: "bob", error, runId: run.id },
        { type: "group-finished", outcome: run.outcome, runId: run.id },
      ]);
      expect([await phasesOf(store, id), await store.leaseOf(id)]).toEqual([["started", "failed"], null]);
      const manager = new SessionManager({ store: await reopen() });
      const again = new GroupSession({ manager });
      again.addAgent(agentOf("ada")).addAgent(agentOf("bob")).addAgent(agentOf("cid"));
      const whole = await again.resume(id);
      expect(linesOf(whole.turns)).toEqual(["user: Go.", "ada: ada 1", "bob: ", "bob: bob 1", "cid: cid 1"]);
      await checkHeadIsFold(manager.store, id);
    },

  "records a failed model, with the work of its agent so far": async ({ group, id, store }) => {
    const tool = defineTool({
      name: "look",
      description: "Looks.",
      parameters: { type: "object" },
      execute: () => "seen",
    });
    const calling = {
      role: "assistant" as const,
      content: null,
      toolCalls: [call("c1")],
      stopReason: "tool_calls" as const,
    };
    const model = scripted([calling, boom, "At last."]);
    const one = group().addAgent(createAgent({ name: "ada", prompt: "", model, tools: [tool] }));
    const state = await one.run(id, "Go.", { maxRounds: 1 });
    expect(state.turns.map(({ role, stopReason }) => stopReason ?? role)).toEqual([
      "user",
      "tool_calls",
      "tool",
      "error",
    ]);
    const whole = await one.resume(id);
    expect(linesOf(whole.turns).at(-1)).toBe("ada: At last.");
    // Completed calls are not repeated, and the model does not see the failure itself.
    expect(model.requests[2]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(await phasesOf(store, id)).toEqual(["started", "failed", "started", "finished"]);
  },

  "continues after an abort in the middle of a round, as another object": async ({ group, id, store }, reopen) => {
    const { answer, asked } = hanging();
    const controller = new AbortController();
    const first = group()
      .addAgent(agentOf("ada"))
      .addAgent(agentOf("bob", "bob 1", answer))
      .addAgent(agentOf("cid"));
    const run = first.stream(id, "Go.", { maxRounds: 2, signal: controller.signal });
    await asked;
    controller.abort(new Error("enough"));
    await expect(run).rejects.toMatchObject({ code: "ABORTED", cause: { message: "enough" } });
    expect((await eventsOf(run)).at(-1)).toMatchObject({ type: "group-failed", error: { code: "ABORTED" } });
    expect([run.pending, run.outcome]).toEqual([false, null]);
    expect([await phasesOf(store, id), await store.leaseOf(id)]).toEqual([["started", "cancelled"], null]);
    const group2 = new GroupSession({ manager: new SessionManager({ store: await reopen() }) });
    const [ada, bob, cid] = [agentOf("ada"), agentOf("bob", "bob 2"), agentOf("cid", "cid 2")];
    const again = group2.addAgent(ada).addAgent(bob).addAgent(cid).stream(id, null);
    expect(linesOf((await again).turns)).toEqual([
      "user: Go.",
      "ada: ada 1",
      "bob: bob 1",
      "cid: cid 1",
      "ada: ada 2",
      "bob: bob 2",
      "cid: cid 2",
    ]);
    expect([ada.asked.length, bob.asked.length, cid.asked.length]).toEqual([0, 1, 1]);
    expect((await eventsOf(again))[0]).toMatchObject({ type: "group-started", resumed: true });
    expect(again.outcome).toEqual({ reason: "max-rounds" });
  },

  "does not continue after its end": async ({ group, id, store }) => {
    const one = group().addAgent(agentOf("ada"));
    await one.run(id, "Go.", { maxRounds: 1 });
    const idle = agentOf("ada");
    const run = group().addAgent(idle).stream(id, null, { maxRounds: 5 });
    expect(linesOf((await run).turns)).toEqual(["user: Go.", "ada: ada 1"]);
    expect([run.outcome, idle.asked.length]).toEqual([{ reason: "max-rounds" }, 0]);
    expect((await store.head(id))?.openRuns).toEqual([]);
  },

  "answers a repeated message with the same turnId once": async ({ group, id, store }) => {
    const failing = group().addAgent(agentOf("ada", boom)).addAgent(agentOf("bob"));
    await failing.run(id, "Go.", { maxRounds: 1, turnId: "job-1" });
    const again = group().addAgent(agentOf("ada")).addAgent(agentOf("bob"));
    const state = await again.run(id, "Go.", { maxRounds: 1, turnId: "job-1" });
    expect(linesOf(state.turns)).toEqual(["user: Go.", "ada: ", "ada: ada 1", "bob: bob 1"]);
    expect(await again.run(id, "Go.", { turnId: "job-1" })).toMatchObject({ turnCount: 4 });
    const before = await entriesOf(store, id);
    await expect(again.run(id, "Other.", { turnId: "job-1" })).rejects.toMatchObject({ code: "ENTRY_EXISTS" });
    expect(await entriesOf(store, id)).toEqual(before);
    await again.run(id, "Next.", { maxRounds: 1 });
    await expect(again.run(id, "Go.", { turnId: "job-1" })).rejects.toMatchObject({ code: "ENTRY_EXISTS" });
  },

  "refuses a second run on the same session, or lets it wait": async ({ group, id, store }) => {
    const { answer, asked } = hanging();
    const first = group().addAgent(agentOf("ada", answer)).stream(id, "First.");
    await asked;
    const before = await entriesOf(store, id);
    const bob = agentOf("bob");
    const second = group().addAgent(bob);
    await expect(second.run(id, "Second.")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await expect(second.run(id, "Second.", { ifBusy: "enqueue", waitMs: 30 })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    expect(await entriesOf(store, id)).toEqual(before);
    const waiting = second.stream(id, "Third.", { ifBusy: "enqueue", maxRounds: 1 });
    const given = second.stream(id, "Never.", { ifBusy: "enqueue" });
    given.abort("not needed");
    await expect(given).rejects.toMatchObject({ code: "ABORTED" });
    first.abort();
    await expect(first).rejects.toMatchObject({ code: "ABORTED" });
    expect(linesOf((await waiting).turns)).toEqual(["user: First.", "user: Third.", "bob: bob 1"]);
  },

  "refuses a run of an agent in its session meanwhile, and the other way round": async ({ group, id, manager }) => {
    const { answer, asked } = hanging();
    const run = group().addAgent(agentOf("ada", answer)).stream(id, "Go.");
    await asked;
    const agent = createAgent({ name: "bob", prompt: "", model: scripted([() => new Promise<string>(() => {})]) });
    await expect(manager.run(id, agent, "Hello.")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    run.abort();
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
    const loop = manager.run(id, agent, "Hello.");
    for await (const event of loop) if (event.type === "round-started") break;
    await expect(group().addAgent(agentOf("ada")).run(id, "Go.")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    loop.abort();
    await expect(loop).rejects.toMatchObject({ code: "ABORTED" });
  },

  "stops with an error if the leaf is moved away from the message": async ({ group, id, manager, store }) => {
    await manager.addTurn(id, { role: "user", content: "before", turnId: "before" });
    const ada = agentOf("ada", async () => {
      await (await manager.open(id)).branch("before");
      return "too late";
    });
    await expect(group().addAgent(ada).run(id, "Go.")).rejects.toMatchObject({ code: "CONFLICT" });
    expect(linesOf((await manager.getState(id))?.turns ?? [])).toEqual(["user: before"]);
    expect([await phasesOf(store, id), await store.leaseOf(id)]).toEqual([["started", "failed"], null]);
    await checkHeadIsFold(store, id);
  },

  "writes nothing after it has lost its lease": async ({ group, id, manager, store }) => {
    const ada = agentOf("ada", async () => {
      // A live lease cannot be taken; the lease of a deleted session ends.
      await store.delete(id);
      await store.undelete(id);
      await store.lease(id, "another run", 600_000);
      return "too late";
    });
    const run = group().addAgent(ada).stream(id, "Go.");
    await expect(run).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(linesOf((await manager.getState(id))?.turns ?? [])).toEqual(["user: Go."]);
    expect(await phasesOf(store, id)).toEqual(["started"]);
  },

  "stops with the session's own error if the session is closed meanwhile, and nothing is added": async (stage) => {
    const { group, id, manager, store } = stage;
    const ada = agentOf("ada", async () => {
      await manager.close(id);
      return "too late";
    });
    await expect(group().addAgent(ada).run(id, "Go.")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    expect(linesOf((await manager.getState(id))?.turns ?? [])).toEqual(["user: Go."]);
    expect(await phasesOf(store, id)).toEqual(["started", "failed"]);
  },

  "throws a specific error for each status, and changes nothing": async ({ group, id, manager, store }) => {
    const one = group().addAgent(agentOf("ada"));
    const refused = async (code: string, options: { actor?: string } = {}): Promise<void> => {
      const before = await entriesOf(store, id);
      await expect(one.run(id, "Go.", options)).rejects.toMatchObject({ code });
      await expect(one.resume(id, options)).rejects.toMatchObject({ code });
      expect([await entriesOf(store, id), await store.leaseOf(id)]).toEqual([before, null]);
    };
    await expect(one.run("nowhere", "Go.")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", sessionId: "nowhere" });
    await refused("SESSION_NOT_FOUND", { actor: "bob" });
    await expect(one.resume(id)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await manager.suspend(id);
    await refused("SESSION_SUSPENDED");
    await manager.close(id);
    await refused("SESSION_CLOSED");
    await manager.delete(id);
    await refused("SESSION_NOT_FOUND");
  },

  "works on behalf of the session's own user": async ({ group, id }) => {
    const one = group().addAgent(agentOf("ada"));
    expect((await one.run(id, "Go.", { actor: "ann", maxRounds: 1 })).turnCount).toBe(2);
    const admin = { userId: "root", admin: true };
    expect((await one.run(id, "Go.", { actor: admin, maxRounds: 1, turns: false })).turns).toEqual([]);
  },

  "ends at the session's limit of turns with nothing lost": async ({ id, store }) => {
    const manager = new SessionManager({ store, config: { maxTurnsPerSession: 3 } });
    const two = new GroupSession({ manager }).addAgent(agentOf("ada")).addAgent(agentOf("bob"));
    await expect(two.run(id, "Go.")).rejects.toMatchObject({ code: "CAPACITY" });
    expect(linesOf((await manager.getState(id))?.turns ?? [])).toEqual(["user: Go.", "ada: ada 1", "bob: bob 1"]);
    const before = await entriesOf(store, id);
    await expect(two.run(id, "More.")).rejects.toMatchObject({ code: "CAPACITY" });
    expect(await entriesOf(store, id)).toEqual(before);
  },

  "keeps the results of calls that have started, though others filled the session meanwhile": async ({ id, store }) => {
    const manager = new SessionManager({ store, config: { maxTurnsPerSession: 3 } });
    let ran = 0;
    const act = toolOf("act", async () => {
      ran += 1;
      await manager.addTurn(id, { role: "user", content: "Meanwhile." }).catch(() => {});
      return "done";
    });
    const model = scripted([calling(callOf("a", "act")), "Never asked for."]);
    const ada = createAgent({ name: "ada", prompt: "", model, tools: [act], builtInTools: false });
    await new GroupSession({ manager }).addAgent(ada).run(id, "Go.");
    const results = (await entriesOf(store, id)).flatMap((entry) =>
      entry.type === "message" && entry.message.role === "tool" ? [entry.message.content] : [],
    );
    expect([ran, results]).toEqual([1, ["done"]]);
  },

  "treats an answer that cannot be stored as a failure of its agent": async ({ group, id }) => {
    const large = "x".repeat(10 * 1024 * 1024);
    const wrong: readonly [unknown, string][] = [
      [7, "INVALID_VALUE"],
      [{ text: "Yes." }, "INVALID_VALUE"],
      [{ content: 7 }, "INVALID_ENTRY"],
      [{ content: "Yes.", cost: -1 }, "INVALID_ENTRY"],
      [{ content: "Yes.", usage: { totalTokens: 1 } }, "INVALID_ENTRY"],
      [{ content: "Yes.", metadata: { at: new Date() } }, "INVALID_VALUE"],
      [{ content: "Yes.", metadata: JSON.parse('{"__proto__": {}}') }, "INVALID_VALUE"],
      [large, "TOO_LARGE"],
    ];
    for (const [answer, code] of wrong) {
      const run = group()
        .addAgent(agentOf("ada", () => answer))
        .stream(id, "Go.");
      expect((await run).turns.at(-1)?.metadata).toMatchObject({ error: { code } });
      expect(run.outcome).toMatchObject({ reason: "agent-failed", agent: "ada", error: { code } });
    }
  },
});
