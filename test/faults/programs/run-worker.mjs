// Goes on with every run of a store that waits for someone, until it is killed or its standard input ends. Each call that
// has an effect leaves a line in a file: run, round and tool.
// node run-worker.mjs <address> <file of effects> <rounds>
// Prints "begin <run>", "row <run>", "end <run> <status>" and, for what must never be, "wrong <sentence>".
import { appendFileSync, writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool, SessionManager } from "skein";
import { openAt } from "./open-at.mjs";

const [address = "", effects = "", rounds = "3"] = process.argv.slice(2);
const lookEveryMs = 20;
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);

/**
 * What a model would do: in each round it looks, notes and pays, and calls are named alike in all of them.
 * @type {import("skein").Model}
 */
const model = {
  provider: "torture",
  id: "counting",
  async complete({ messages }) {
    const said = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
    const round = said.filter(({ role }) => role === "assistant").length;
    await wait(Math.random() * 10);
    if (round >= Number(rounds)) return { role: "assistant", content: "done" };
    const call = (/** @type {string} */ name) => ({ id: name, name, arguments: JSON.stringify({ round }) });
    return { role: "assistant", content: null, toolCalls: ["look", "note", "pay"].map(call) };
  },
};

/**
 * @param {string} name
 * @param {object} more
 */
const tool = (name, more = {}) =>
  defineTool({
    name,
    description: name,
    parameters: { type: "object", properties: { round: { type: "integer" } }, required: ["round"] },
    async execute({ round }, { runId }) {
      if (name !== "look") appendFileSync(effects, `${runId} ${round} ${name}\n`);
      await wait(Math.random() * 10);
      return "ok";
    },
    ...more,
  });

const agent = createAgent({
  name: "worker",
  prompt: "",
  model,
  builtInTools: false,
  tools: [tool("look", { idempotent: true }), tool("note"), tool("pay", { exclusive: true, needsApproval: true })],
});

const store = await openAt(address);
const manager = new SessionManager({ store });
/** @type {Set<string>} */
const busy = new Set();
let stopped = false;
process.stdin.on("end", () => {
  stopped = true;
});
process.stdin.resume();
while (!stopped) {
  for (const state of /** @type {const} */ (["requested", "interrupted"])) {
    const { items } = await manager.runs({ state });
    for (const { sessionId } of items) if (!busy.has(sessionId)) void goOn(sessionId);
  }
  await wait(lookEveryMs);
}
while (busy.size > 0) await wait(lookEveryMs);
await store.close();
process.stdin.destroy();

/** @param {string} sessionId */
async function goOn(sessionId) {
  busy.add(sessionId);
  try {
    const found = await manager.recover(sessionId, { worker: agent }, { leaseMs: 2000, park: { afterMs: 20 } });
    if (found === null) return;
    const { run } = found;
    print(`begin ${run.runId}`);
    void tellRows(run);
    await run.synchronize().finally(() => print(`end ${run.runId} ${run.status}`));
  } catch (error) {
    const { code } = /** @type {{ code?: string }} */ (error);
    // Another has it, had it, or stopped it.
    if (!["SESSION_BUSY", "CONFLICT", "ABORTED", "LEASE_LOST"].includes(code ?? "")) print(`wrong ${error}`);
  } finally {
    busy.delete(sessionId);
  }
}

/** @param {import("skein").SessionRun} run */
async function tellRows(run) {
  for await (const { type } of run)
    if (type === "round-finished" || type === "tool-finished") print(`row ${run.runId}`);
}
