// Continues every due run of a store, until it is killed or its standard input ends. node run-worker.mjs <address>
// <file of effects> <rounds> Prints "begin <run>", "row <run>", "end <run> <status>" and, for a violated promise,
// "wrong <sentence>".
import { writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { SessionManager } from "skein";
import { countingAgent } from "./counting-agent.mjs";
import { openAt } from "./open-at.mjs";

const [address = "", effects = "", rounds = "3"] = process.argv.slice(2);
const lookEveryMs = 20;
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);

const agent = countingAgent({ effects, rounds: Number(rounds) });
const store = await openAt(address);
// A long trial has more turns in a session than the default limit.
const manager = new SessionManager({ store, config: { maxTurnsPerSession: 1_000_000 } });
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
    // Another process has claimed, finished or cancelled the run.
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
