// Starts runs of a user in new sessions, executes requested ones as a worker, or recovers those that killed processes have left, until
// none is open. Prints a line for each answer of the model.
//
// node budget-member.mjs <address> <user> <limit in tokens> <number of runs to start, or worker>
import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool, SessionManager } from "skein";
import { inProcessQueue, startWorker } from "skein/workers";
import { openAt } from "../faults/programs/open-at.mjs";

/** The usage of each answer. */
const usage = { inputTokens: 100, outputTokens: 900, totalTokens: 1000 };
const leaseMs = 1000;
/** The errors with which runs may end here: a busy machine may renew a lease too late. */
const expected = ["BUDGET_EXCEEDED", "RUN_ENDED", "LEASE_LOST"];

const [address = "", userId = "", limit = "", count = ""] = process.argv.slice(2);
const store = await openAt(address);
const manager = new SessionManager({
  store,
  config: { maxSessionsPerUser: 1000, maxTurnsPerSession: 10_000 },
  budgets: [{ per: "user", window: "1d", totalTokens: Number(limit) }],
});
let calls = 0;
const agent = createAgent({
  name: "helper",
  prompt: "Go on until you are stopped.",
  builtInTools: false,
  maxToolRounds: 10_000,
  tools: [
    defineTool({
      name: "note",
      description: "Takes a note.",
      parameters: { type: "object" },
      effects: "reads",
      execute: async () => "noted",
    }),
  ],
  model: {
    provider: "sample",
    id: "sample",
    async complete() {
      await wait(Math.random() * 10);
      process.stdout.write("answer\n");
      const call = { id: `${process.pid}-${calls++}`, name: "note", arguments: "{}" };
      return { role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls", usage };
    },
  },
});
const isWorker = count === "worker";
const worker = isWorker ? await work() : null;
const started = Array.from({ length: isWorker ? 0 : Number(count) }, () =>
  manager.run(agent, "Begin.", { userId, leaseMs }),
);
await Promise.all([...started.map((run) => ended(run)), worker === null ? goOn() : noneOpen()]);
await worker?.close();
process.stdout.write("done\n");
await store.close();

/** Starts a worker, which finds the requests in the store. */
function work() {
  const limits = { concurrency: 1000, maxRunsPerUser: 1000, leaseMs, sweepMs: 200 };
  return startWorker({ manager, agents: [agent], queue: inProcessQueue(), ...limits });
}

async function noneOpen() {
  while ((await openSessions()).length > 0) await wait(50);
}

async function openSessions() {
  const { items } = await store.list({ userId, limit: 1000 });
  return items.filter(({ openRuns }) => openRuns.length > 0);
}

/** Recovers interrupted runs until the user has no open run. */
async function goOn() {
  if (started.length > 0) return;
  for (;;) {
    const open = await openSessions();
    if (open.length === 0) return;
    await Promise.all(
      open.map(async ({ header }) => {
        const found = await manager.recover(header.id, { helper: agent }, { leaseMs }).catch(() => null);
        if (found !== null) await ended(found.run);
      }),
    );
    await wait(50);
  }
}

/** @param {PromiseLike<unknown>} run */
async function ended(run) {
  try {
    await run;
  } catch (error) {
    const { code } = /** @type {{ code?: string }} */ (error);
    if (!expected.includes(code ?? "")) console.error(error);
  }
}
