import { expect, onTestFinished, test } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import "../../src/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { inProcessQueue, startWorker, type WorkerInit } from "../../src/workers/index.ts";
import type { ManagedRunRequest } from "../../src/lifecycle/runs/managed-runs.ts";
import { openRunServer } from "../http/runs-server.ts";
import { toolOf } from "../sample-run.ts";

const helper = (): Agent =>
  createAgent({ name: "helper", prompt: "", model: scripted(["Done."]), builtInTools: false });

/** An agent that was made without `createAgent`, or before the built-in tools existed. */
function clashing(): Agent {
  const agent = helper();
  return {
    ...agent,
    run: (input, options) => agent.run(input, { ...options, builtInTools: true, tools: [builtInTwin] }),
  };
}

/** Longer than the test waits: what is not recorded after the first sweep is never recorded. */
const SWEEP_MS_NEVER = 3_600_000;

const builtInTwin = toolOf("run_shell_command");

interface Blocked {
  readonly what: string;
  readonly agents: () => readonly Agent[];
  readonly request: Partial<ManagedRunRequest>;
  readonly init?: Partial<WorkerInit>;
  readonly code: string;
  /** The state of the run then: it waits for a suitable worker, or can never start. */
  readonly open: boolean;
}

const cases: readonly Blocked[] = [
  {
    what: "an agent that no worker has",
    agents: () => [helper()],
    request: { agent: "ghost" },
    code: "AGENT_NOT_FOUND",
    open: true,
  },
  {
    what: "a group that no worker has",
    agents: () => [helper()],
    request: { group: "ghosts" },
    code: "AGENT_NOT_FOUND",
    open: true,
  },
  {
    what: "a model that is not there",
    agents: () => [helper()],
    request: { agent: "helper", model: "no/model" },
    code: "MODEL_NOT_FOUND",
    open: true,
  },
  {
    what: "a tool that clashes",
    agents: () => [clashing()],
    request: { agent: "helper" },
    code: "INVALID_TOOL",
    open: true,
  },
  {
    what: "options that cannot work",
    agents: () => [helper()],
    request: { agent: "helper", options: { maxToolRounds: -1 } },
    code: "INVALID_OPTION",
    open: false,
  },
];

test.for(cases)(
  "a run for $what records why before the next sweep, with a code",
  async ({ agents, request, init, code, open }) => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const { sessionId } = await manager.create({ userId: "ann" });
    const { runId } = await manager.request(sessionId, { input: "Hello.", ...request });
    const worker = await startWorker({
      manager,
      queue: inProcessQueue(),
      agents: agents(),
      sweepMs: SWEEP_MS_NEVER,
      onError: () => {},
      ...init,
    });
    onTestFinished(() => worker.close({ drainMs: 0 }));
    if (!open) {
      const last = async () => {
        let end: unknown = null;
        for await (const entry of store.read(sessionId)) if (entry.type === "run") end = entry;
        return end;
      };
      await expect.poll(last).toMatchObject({ phase: "failed", error: { code } });
      expect((await manager.runs({ state: "requested" })).items).toEqual([]);
      return;
    }
    const blocked = async () => (await manager.runs({ state: "requested" })).items[0]?.blocked;
    await expect.poll(blocked).toMatchObject({ code, message: expect.any(String), since: expect.any(String) });
    const entries = async () => (await store.head(sessionId))?.version;
    const before = await entries();
    // A further attempt records nothing new.
    await worker.close({ drainMs: 0 });
    const again = await startWorker({ manager, queue: inProcessQueue(), agents: agents(), onError: () => {}, ...init });
    await again.close({ drainMs: 0 });
    expect(await entries()).toBe(before);
    // A suitable worker starts it, and the reason is removed.
    await manager.cancel(sessionId, { runId });
    expect((await manager.runs({ state: "requested" })).items).toEqual([]);
  },
);

test("each of many workers that have just started records that no worker has the group of a run", async () => {
  const codes: (() => Promise<string | undefined>)[] = [];
  // One after the other: each worker then asks the others right after it began to listen.
  for (let count = 0; count < 50; count++) {
    const manager = new SessionManager({ store: openMemoryStore() });
    const { sessionId } = await manager.create({ userId: "ann" });
    await manager.request(sessionId, { input: "Hello.", group: "ghosts" });
    const init = { manager, queue: inProcessQueue(), agents: [helper()], sweepMs: SWEEP_MS_NEVER };
    const worker = await startWorker(init);
    onTestFinished(() => worker.close({ drainMs: 0 }));
    codes.push(async () => (await manager.runs({ state: "requested" })).items[0]?.blocked?.code);
  }
  for (const code of codes) await expect.poll(code).toBe("AGENT_NOT_FOUND");
});

test("a worker whose tools are to act in a backend that is missing does not start, and names the backend", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const init = { manager, queue: inProcessQueue(), agents: [helper()], place: { backend: "nowhere" } };
  await expect(startWorker(init)).rejects.toMatchObject({ message: expect.stringContaining("nowhere") });
});

test("a reason is over as soon as some worker begins the run", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { input: "Hello.", agent: "helper" });
  const blocked = async () => (await manager.runs({ state: "requested" })).items[0]?.blocked?.code;
  const broken = await startWorker({ manager, queue: inProcessQueue(), agents: [clashing()], onError: () => {} });
  await expect.poll(blocked).toBe("INVALID_TOOL");
  await broken.close();
  const worker = await startWorker({ manager, queue: inProcessQueue(), agents: [helper()] });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  await expect.poll(async () => (await manager.getState(sessionId))?.turns.at(-1)?.content).toBe("Done.");
  expect((await manager.head(sessionId))?.openRuns).toEqual([]);
});

test("over HTTP the run, the list and the fleet show why no worker can start it", async () => {
  const { client, sessionId } = await openRunServer({ agents: { helper: clashing() } });
  const run = await client.runs.start(sessionId, { input: "Hello." });
  const problem = async () => (await client.runs.get(sessionId, run.runId)).problem;
  await expect
    .poll(problem)
    .toMatchObject({ code: "INVALID_TOOL", detail: expect.stringContaining("run_shell_command") });
  const { items } = await client.runs.list({ state: "requested" });
  expect(items).toMatchObject([{ runId: run.runId, status: "requested", problem: { code: "INVALID_TOOL" } }]);
  const { requested } = await client.fleet();
  expect(requested.items).toMatchObject([{ problem: { code: "INVALID_TOOL" } }]);
});

test("createAgent refuses a tool that has the name of a built-in tool, and names it", () => {
  const make = (more: object): Agent => createAgent({ prompt: "", model: scripted([]), tools: [builtInTwin], ...more });
  const refused = { code: "INVALID_TOOL", message: expect.stringMatching(/run_shell_command.*rename it/) };
  expect(() => make({})).toThrow(expect.objectContaining(refused));
  expect(() => make({ builtInTools: true })).toThrow(expect.objectContaining(refused));
  expect(() => make({ builtInTools: ["run_shell_command"] })).toThrow(expect.objectContaining(refused));
  expect(() => make({ builtInTools: false, tools: [builtInTwin, builtInTwin] })).toThrow(/Two tools/);
  expect(make({ builtInTools: false }).tools).toHaveLength(1);
});
