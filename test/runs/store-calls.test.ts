import { expect, onTestFinished, test } from "vitest";
import { abandonRun } from "../../src/agent/active-runs.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import { runSessionLoop } from "../../src/agent/run-session-loop.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { gate } from "../http/runs-agents.ts";
import { openRunServer } from "../http/runs-server.ts";
import { asking, callOf, calling, modelOf, saying, someAgent, toolOf } from "../sample-run.ts";

/** A store that tells of each call of a method, with the stack of its caller, before it passes the call on. */
function observed(store: SessionStore, tell: (method: string, stack: readonly string[]) => void): SessionStore {
  return new Proxy(store, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key, target);
      if (typeof own !== "function") return own;
      return function call(...args: unknown[]): unknown {
        const told: { stack?: string } = {};
        Error.captureStackTrace(told, call);
        tell(String(key), (told.stack ?? "").split("\n").slice(1));
        return Reflect.apply(own, target, args);
      };
    },
  });
}

test.each(["a store", "a tree"])("four calls at most lead from the loop or its tools to %s", async (kind) => {
  const limit = Error.stackTraceLimit;
  onTestFinished(() => {
    Error.stackTraceLimit = limit;
  });
  Error.stackTraceLimit = 50;
  const counts: number[] = [];
  const store = observed(openMemoryStore(), (method, stack) => {
    const isOfLoop = stack.some((frame) => /agent\/(?:loop|tools\/tool-dispatch)\.ts/.test(frame));
    // Frames of the run's log, and the call of the store or the tree.
    if (method === "append" && isOfLoop) counts.push(1 + stack.filter((frame) => frame.includes("/persist/")).length);
  });
  await store.create(createHeader({ id: "s" }));
  const persist = kind === "a tree" ? await SessionTree.on(store, "s") : store;
  const model = scripted([calling(callOf("1", "look")), saying("Done.")]);
  await runSessionLoop(asking(), someAgent(), { model, tools: [toolOf("look")], builtInTools: false, persist });
  expect(counts).toEqual([4, 4, 4]);
});

test("recovering a run reads each of its entries once", async () => {
  let entries = 0;
  const inner = openMemoryStore();
  const read: SessionStore["read"] = (...args) => {
    const all = inner.read(...args);
    const counted = async function* (): AsyncGenerator<Entry> {
      for await (const entry of all) {
        entries += 1;
        yield entry;
      }
    };
    return counted() as ReturnType<SessionStore["read"]>;
  };
  const store = new Proxy(inner, {
    get(target, key) {
      const own: unknown = key === "read" ? read : Reflect.get(target, key, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  const rounds = 200;
  const asked = gate();
  let answers = 0;
  const model = modelOf(async () => {
    answers += 1;
    if (answers <= rounds) return calling(callOf(`${answers}`, "look"));
    asked.open();
    return new Promise<never>(() => {});
  });
  const tools = [toolOf("look", () => "seen", { idempotent: true })];
  const loop = { model, tools, builtInTools: false, maxToolRounds: rounds + 1, persist: store };
  const run = runSessionLoop(asking(), someAgent(), loop);
  run.synchronize().catch(() => {});
  await asked.opened;
  await abandonRun(run.id);
  entries = 0;
  const { user } = await resumeSession({ store, sessionId: run.id });
  expect(user.transcript.length).toBe(2 * rounds + 1);
  const { version = 0 } = (await store.head(run.id)) ?? {};
  expect(entries).toBeLessThanOrEqual(version * 1.3);
});

test("a run that is requested over HTTP takes three reads of the head until its first event is streamed", async () => {
  let reads = 0;
  const store = observed(openMemoryStore(), (method) => {
    if (method === "head" || method === "heads") reads += 1;
  });
  const [asked, streamed] = [gate(), gate()];
  const model = modelOf(async () => {
    asked.open();
    await streamed.opened;
    return saying("Hello.");
  });
  const helper = createAgent({ name: "helper", prompt: "Work.", builtInTools: false, model });
  const { manager, client } = await openRunServer({ store, agents: { helper }, init: { recoverMs: 0 } });
  await manager.create({ userId: "ann", id: "s" });
  reads = 0;
  const { runId } = await client.runs.start("s", { input: "Hi." });
  // The worker of the server has the run now, so that no read of it can follow.
  await asked.opened;
  for await (const event of client.runs.events("s", runId)) {
    expect([event.type, reads]).toEqual(["run-started", 3]);
    break;
  }
  streamed.open();
});
